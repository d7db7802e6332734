import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compressions } from '../src/blake3.ts'
import { objectId } from '../src/id.ts'
import { counterId, itemId } from '../src/names.ts'
import { encodeState, type NodeFields, nodeObjectId } from '../src/object.ts'
import type { Change } from '../src/record.ts'
import { State } from '../src/state.ts'

const fields = (number: number): NodeFields => ({ content: String(number) })

/** A state beside a plain model of it, both given the same changes. */
class Pair {
  readonly state: State
  private readonly prefix: string
  private readonly nodes = new Map<string, Uint8Array>()
  private next = 0
  private seq = 0

  constructor(prefix: string) {
    this.prefix = prefix
    this.state = new State(prefix)
  }

  get numbers(): number[] {
    return this.state.items().map(({ number }) => number)
  }

  append(count: number, known = true): void {
    const changes: Change[] = []
    const objects = new Map<number, Uint8Array>()
    for (let i = 0; i < count; i++) {
      const number = this.next++
      objects.set(number, nodeObjectId(itemId(this.prefix, number), fields(number)))
      changes.push({ kind: 'item', number, fields: fields(number) })
      this.nodes.set(itemId(this.prefix, number), objects.get(number) as Uint8Array)
    }
    this.apply([...changes, { kind: 'counter', value: this.next }], known ? objects : undefined)
    this.nodes.set(counterId(this.prefix), nodeObjectId(counterId(this.prefix), fields(this.next)))
  }

  remove(from: number, count: number): void {
    this.apply([{ kind: 'remove', from, count }])
    for (let i = 0; i < count; i++) this.nodes.delete(itemId(this.prefix, from + i))
  }

  /** An item set where another stands or stood: only an import does that. */
  set(number: number): void {
    this.apply([{ kind: 'item', number, fields: fields(-number) }])
    this.nodes.set(itemId(this.prefix, number), nodeObjectId(itemId(this.prefix, number), fields(number)))
    this.next = Math.max(this.next, number + 1)
  }

  other(id: string, isThere: boolean): void {
    this.apply([isThere ? { kind: 'node', id, fields: fields(0) } : { kind: 'remove_node', id }])
    if (isThere) this.nodes.set(id, nodeObjectId(id, fields(0)))
    else this.nodes.delete(id)
  }

  clear(): void {
    const changes: Change[] = this.numbers.map((from) => ({ kind: 'remove', from, count: 1 }))
    this.apply([...changes, { kind: 'remove_counter' }])
    for (const id of Array.from(this.nodes.keys()))
      if (id.startsWith(`${this.prefix}:`)) this.nodes.delete(id)
    this.next = 0
  }

  /** The state's id; what is not known yet is read as the model has it. */
  id(): Promise<Buffer> {
    return this.state.id(async (missing) =>
      missing.map(({ key }) =>
        typeof key === 'number'
          ? { kind: 'item', number: key, fields: fields(key) }
          : { kind: 'node', id: key, fields: fields(0) },
      ),
    )
  }

  plain(): Buffer {
    return objectId(encodeState(this.nodes))
  }

  private apply(changes: Change[], objects?: Map<number, Uint8Array>): void {
    this.state.apply(++this.seq, { changes }, objects)
  }
}

async function agree(pair: Pair): Promise<void> {
  expect((await pair.id()).toString('hex')).toBe(pair.plain().toString('hex'))
}

describe('the state’s id is the hash of the whole state, whatever was changed', () => {
  const edit = fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.constant('append' as const), fc.integer({ min: 1, max: 60 })) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('unknown' as const), fc.integer({ min: 1, max: 5 })) },
    { weight: 3, arbitrary: fc.tuple(fc.constant('remove' as const), fc.nat(400)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('run' as const), fc.nat(400)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('set' as const), fc.nat(400)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('other' as const), fc.nat(3)) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('clear' as const), fc.nat(0)) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('hash' as const), fc.nat(0)) },
  )

  test('under random edits, for prefixes of every length', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 255 }),
        fc.array(edit, { maxLength: 30 }),
        async (length, edits) => {
          const pair = new Pair('p'.repeat(length))
          for (const [kind, value] of edits) {
            const { numbers } = pair
            if (kind === 'append' || kind === 'unknown') pair.append(value, kind === 'append')
            else if (kind === 'set') pair.set(value)
            else if (kind === 'other') pair.other(`note ${value}`, value % 2 === 0)
            else if (kind === 'clear') pair.clear()
            else if (kind === 'hash') await agree(pair)
            else if (numbers.length > 0)
              pair.remove(numbers[value % numbers.length] as number, kind === 'run' ? 7 : 1)
          }
          await agree(pair)
        },
      ),
      { numRuns: 150 },
    )
  })

  test.each([1, 5, 100])(
    'at every size from 0 to 600 items, one add at a time (prefix of %d)',
    async (length) => {
      const pair = new Pair('p'.repeat(length))
      for (let i = 0; i < 600; i++) {
        pair.append(1)
        await agree(pair)
      }
    },
  )

  test('where the head of the map grows to 65,536 entries, and after a removal there', async () => {
    const pair = new Pair('prefs')
    pair.append(65_533)
    for (let i = 0; i < 4; i++) {
      pair.append(1)
      await agree(pair)
    }
    pair.remove(30_000, 1)
    await agree(pair)
    pair.append(3)
    await agree(pair)
  })
})

test('an append costs the same at any size, but for the height of the tree', async () => {
  const cost = async (size: number) => {
    const pair = new Pair('prefs')
    pair.append(size)
    await pair.id()
    const costs: number[] = []
    for (let i = 0; i < 40; i++) {
      pair.append(1)
      const before = compressions()
      await pair.id()
      costs.push(compressions() - before)
    }
    return Math.max(...costs)
  }
  const height = (size: number) => Math.ceil(Math.log2((size * 51) / 1024))
  const [small, large] = [await cost(1000), await cost(100_000)]
  // Two paths to the root: the first chunk's and the last one's.
  expect(large - small).toBeLessThanOrEqual(2 * (height(100_000) - height(1000)))
  expect(small).toBeLessThan(70)
})
