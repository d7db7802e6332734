import { describe, expect, it } from 'vitest'
import { Daemon } from './daemon.ts'
import { textItem } from './frames.ts'

const MiB = 1024 * 1024

describe('limits', () => {
  it('an item past its limit is refused with the limit, and the connection stays', async () => {
    const daemon = await new Daemon().hello()
    const { error } = await daemon.call('add', { memory: 'm', items: [textItem('x'.repeat(9 * MiB))] })
    expect(error?.data).toMatchObject({ kind: 'too_large', limit: 8 * MiB, path: 'items[0]' })
    expect((await daemon.result('stats', { memory: 'm' })).commits).toBe(0)
    await daemon.end()
  })

  it('more items than one add takes are refused, and the connection stays', async () => {
    const daemon = await new Daemon().hello()
    const { error } = await daemon.call('add', { memory: 'm', items: Array(10_001).fill(textItem('')) })
    expect(error?.data).toMatchObject({ kind: 'too_large', limit: 10_000, actual: 10_001 })
    await daemon.end()
  })

  it('a memory larger than a frame comes in parts; rendered in one it is refused with what to do', async () => {
    const daemon = await new Daemon().hello()
    const texts = Array.from({ length: 8 }, (_, i) => String(i).repeat(5 * MiB))
    for (const text of texts) await daemon.result('add', { memory: 'm', items: [textItem(text)] })
    const got: string[] = []
    let params: object = { memory: 'm' }
    for (let parts = 0; ; parts++) {
      const { commit, epoch, items, more } = await daemon.result('query', params)
      got.push(...items.map((item: { content: { text: string } }) => item.content.text))
      if (more !== true) {
        expect(parts).toBeGreaterThan(0)
        break
      }
      params = { memory: 'm', at: commit, have: { commit, epoch, count: got.length } }
    }
    expect(got.length).toBe(texts.length)
    expect(got.every((text, i) => text === texts[i])).toBe(true)
    const { error } = await daemon.call('update_context', { memory: 'm', render: true })
    expect(error?.data.kind).toBe('too_large')
    expect(error?.message).toContain('max_items')
    expect((await daemon.result('update_context', { memory: 'm', render: true, max_items: 1 })).omitted).toBe(
      7,
    )
    await daemon.end()
  })
})
