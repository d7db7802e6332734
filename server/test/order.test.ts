import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Order } from '../src/session/order.ts'
import { textItem } from './frames.ts'
import { SessionPeer } from './session-peer.ts'

const ADD = { memory: 'm', items: [textItem('a')] }
const READ = { memory: 'm' }

describe('requests of one connection about one memory', () => {
  it('writes reach the store in order and together, without waiting for each other', async () => {
    const peer = await new SessionPeer().hello()
    peer.send(
      [1, 'add', ADD],
      [2, 'clear', READ],
      [3, 'forget', { ...READ, ids: ['m:0000000000'] }],
      [4, 'add', ADD],
    )
    await peer.stores.nth(3)
    expect(peer.stores.called).toEqual(['add m', 'clear m', 'forget m', 'add m'])
  })

  it('all writes of one piece of input reach the store before the event loop turns', async () => {
    const peer = await new SessionPeer().hello()
    let turned = false
    const first = peer.stores.nth(0).then(() => setImmediate(() => (turned = true)))
    peer.send(...Array.from({ length: 100 }, (_, id): [number, string, object] => [id, 'add', ADD]))
    await first
    await peer.stores.nth(99)
    expect(turned).toBe(false)
  })

  it('a read waits for the writes before it, a write for the reads before it', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'add', ADD], [2, 'query', READ], [3, 'log', READ], [4, 'add', ADD], [5, 'show', READ])
    const steps: string[][] = []
    for (let done = 0; done < 5; done++) {
      const { resolve } = await peer.stores.nth(done)
      steps.push([...peer.stores.called])
      resolve()
    }
    expect(steps[0]).toEqual(['add m'])
    expect(steps[1]).toEqual(['add m', 'listing m', 'log m'])
    expect(steps[3]).toEqual(['add m', 'listing m', 'log m', 'add m'])
    await peer.answer(5)
  })

  it('those about another memory do not wait', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'query', READ], [2, 'add', ADD], [3, 'add', { ...ADD, memory: 'n' }])
    await peer.stores.nth(1)
    expect(peer.stores.called).toEqual(['listing m', 'add n'])
  })

  it('a list of memories waits for every write before it', async () => {
    const peer = await new SessionPeer().hello()
    peer.send(
      [1, 'add', ADD],
      [2, 'add', { ...ADD, memory: 'n' }],
      [3, 'memories'],
      [4, 'stats'],
      [5, 'ping'],
    )
    await peer.answer(5)
    const [first, second] = [await peer.stores.nth(0), await peer.stores.nth(1)]
    first.reject(new Error('full'))
    await peer.answer(1)
    expect(peer.stores.called).toEqual(['add m', 'add n'])
    second.resolve()
    await peer.stores.nth(3)
    expect(peer.stores.called).toEqual(['add m', 'add n', 'memories', 'stats'])
  })
})

describe('Order', () => {
  it('never lets a read and a write of one memory overlap, keeps their order, and forgets idle memories', async () => {
    const requests = fc.array(
      fc.record({ memory: fc.constantFrom('a', 'b'), isWrite: fc.boolean(), fails: fc.boolean() }),
    )
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), requests, async (scheduler, all) => {
        const order = new Order()
        const { signal } = new AbortController()
        const active = { a: [0, 0], b: [0, 0] } as Record<string, [reads: number, writes: number]>
        const started: Record<string, number[]> = { a: [], b: [] }
        const done = all.map(({ memory, isWrite, fails }, index) => {
          const run = async () => {
            const counts = active[memory] as [number, number]
            started[memory]?.push(index)
            counts[isWrite ? 1 : 0]++
            expect(Math.min(...counts)).toBe(0)
            await scheduler.schedule(Promise.resolve())
            counts[isWrite ? 1 : 0]--
            if (fails) throw new Error('failed')
          }
          return isWrite ? order.write(memory, run, signal) : order.read(memory, run, signal)
        })
        const settled = Promise.allSettled(done)
        await scheduler.waitFor(settled)
        const results = await settled
        expect(results.map(({ status }) => status === 'rejected')).toEqual(all.map(({ fails }) => fails))
        for (const indexes of Object.values(started))
          expect(indexes).toEqual([...indexes].sort((x, y) => x - y))
        expect((order as unknown as { lanes: Map<string, unknown> }).lanes.size).toBe(0)
      }),
    )
  })
})
