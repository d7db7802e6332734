import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MnemError } from '../src/errors.ts'
import { openStores, type Stores } from '../src/stores.ts'
import { temporaryFolder } from './temporary.ts'

const text = (value: string) => ({ content: { type: 'text' as const, text: value }, mime_type: 'text/plain' })
const names = ['a', 'b']

/** Everything that can be read of a memory, as text. */
async function everything(stores: Stores, memory: string): Promise<string> {
  const { items = [] } = await stores.listing({ memory })
  return items.map(String).join() + JSON.stringify(await stores.log({ memory }))
}

/** What a read gives, or the kind of its failure; a failure without a kind is the test's. */
async function outcome(read: () => Promise<string>): Promise<string> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof MnemError) return error.kind
    throw error
  }
}

test('a bit that flips anywhere in the file changes no answer: it is harmless or corrupt_store', async () => {
  const dir = temporaryFolder()
  const whole = join(dir, 'whole')
  const stores = await openStores(whole)
  for (let i = 0; i < 40; i++)
    await stores.add({ memory: names[i % 2] as string, items: [text(`item ${i}`)], time: i })
  await stores.clear({ memory: 'b', time: 99 })
  await stores.add({ memory: 'b', items: [text('after')], time: 100 })
  const expected = await Promise.all(names.map((name) => everything(stores, name)))
  await stores.close()
  const bytes = readFileSync(join(whole, 'mnem.db'))
  const copy = join(dir, 'copy')
  const flip = fc.tuple(fc.nat(bytes.length - 1), fc.nat(7))
  await fc.assert(
    fc.asyncProperty(flip, async ([at, bit]) => {
      const damaged = Buffer.from(bytes)
      damaged[at] = (damaged[at] as number) ^ (1 << bit)
      rmSync(copy, { recursive: true, force: true })
      mkdirSync(copy)
      writeFileSync(join(copy, 'mnem.db'), damaged)
      const opened = await openStores(copy).catch((error: unknown) => error)
      if (opened instanceof MnemError) return
      const reopened = opened as Stores
      for (const [index, name] of names.entries()) {
        const read = await outcome(() => everything(reopened, name))
        expect(['corrupt_store', expected[index]]).toContain(read)
      }
      await outcome(async () => (await reopened.add({ memory: 'a', items: [text('more')] })).commit)
      await reopened.close()
    }),
    { numRuns: 250, seed: 7 },
  )
})
