import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MemoryEngine } from '../../core/src/engine/memory.ts'
import { type NewItem, Stores } from '../../core/src/index.ts'
import { packItem, renderItem } from '../../core/src/item.ts'
import { canonicalJson, JsonText, members } from '../../core/src/json.ts'
import { counterId, itemId } from '../../core/src/names.ts'
import { jsonValue, spell } from '../../core/test/arbitrary.ts'
import { askOracle, type OracleNode, type OracleStep, oracleMissing } from './oracle.ts'

const missing = oracleMissing()
if (missing !== undefined) process.stderr.write(`oracle tests skipped: ${missing}\n`)

const memory = 'prefs'
const author = 'agent'

type Operation = { add: NewItem[] } | { forget: number[] } | { clear: true }

const item: fc.Arbitrary<NewItem> = fc
  .record({
    content: fc.oneof(
      fc.string({ unit: 'grapheme' }).map((text) => ({ type: 'text' as const, text })),
      jsonValue
        .filter((value) => value instanceof Map)
        .map((value) => ({ type: 'json' as const, json: new JsonText(spell(value)) })),
      fc
        .uint8Array({ maxLength: 9 })
        .map((bytes) => ({ type: 'bytes' as const, base64: Buffer.from(bytes).toString('base64') })),
    ),
    mime_type: fc.constantFrom('text/plain', 'application/json', ''),
    provenance: fc.option(fc.record({ source: fc.string(), note: fc.constant('') }, { requiredKeys: [] }), {
      nil: undefined,
    }),
    event_time: fc.option(fc.integer({ min: -5, max: 1757000000000 }), { nil: undefined }),
  })
  .map(({ provenance, event_time, ...rest }) => ({
    ...rest,
    ...(provenance === undefined ? {} : { provenance }),
    ...(event_time === undefined ? {} : { event_time }),
  }))

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ add: fc.array(item, { minLength: 1, maxLength: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ forget: fc.uniqueArray(fc.nat(30), { minLength: 1, maxLength: 4 }) }) },
  { weight: 1, arbitrary: fc.constant({ clear: true as const }) },
)

/** What an operation has to be for the outside implementation: nodes set and removed, and what the commit says. */
class Translator {
  readonly steps: OracleStep[] = []
  private live: number[] = []
  private next: number | undefined

  /** Gives the operation with its numbers filled in; undefined where it would make no commit. */
  take(op: Operation): Operation | undefined {
    const time = 1757000000000 + this.steps.length
    if ('add' in op) {
      const first = this.next ?? 0
      const nodes = op.add.map((added, index) => this.node(first + index, added))
      this.next = first + op.add.length
      for (let number = first; number < this.next; number++) this.live.push(number)
      const add = [...nodes, { id: counterId(memory), content: String(this.next) }]
      const message =
        op.add.length === 1 ? `add item to ${memory}` : `add ${op.add.length} items to ${memory}`
      this.steps.push({ add, rm: [], message, author, time })
      return op
    }
    if ('forget' in op) {
      const gone = Array.from(new Set(op.forget.flatMap((index) => this.live[index] ?? [])))
      if (gone.length === 0) return undefined
      const rm = gone.map((number) => itemId(memory, number))
      this.live = this.live.filter((number) => !gone.includes(number))
      this.steps.push({
        add: [],
        rm,
        message: gone.length === 1 ? `forget ${rm[0]}` : `forget ${gone.length} nodes`,
        author,
        time,
      })
      return { forget: gone }
    }
    if (this.next === undefined) return undefined
    const rm = [...this.live.map((number) => itemId(memory, number)), counterId(memory)]
    this.steps.push({
      add: [],
      rm,
      message: rm.length === 1 ? 'forget 1 node' : `forget ${rm.length} nodes`,
      author,
      time,
    })
    this.live = []
    this.next = undefined
    return op
  }

  private node(number: number, added: NewItem): OracleNode {
    const { content } = packItem(added, 'item', 1_000_000)
    const node: OracleNode = { id: itemId(memory, number), content }
    const provenance = Object.entries(added.provenance ?? {})
    if (provenance.length > 0) node.provenance = Object.fromEntries(provenance)
    if (added.event_time !== undefined) node.event_time = added.event_time
    return node
  }
}

/** The item again, with the content that the reference holds of it. */
function asHeld(added: NewItem, held: string | undefined): NewItem {
  if (added.content.type !== 'json' || held === undefined) return added
  const rendered = renderItem(memory, 0, { content: canonicalJson(held).text }).text
  const [, content] = members(rendered)
  const inner = rendered.slice(content?.start, content?.end)
  const json = members(inner)[1]
  return { ...added, content: { type: 'json', json: new JsonText(inner.slice(json?.start, json?.end)) } }
}

/** Make the same commits in both, and compare what each calls them. */
async function compare(stores: Stores, operations: Operation[]): Promise<number> {
  const translator = new Translator()
  const taken = operations.map((op) => translator.take(op)).filter((op) => op !== undefined)
  const answers = await askOracle(translator.steps)
  expect(answers).toHaveLength(taken.length)
  for (const [index, op] of taken.entries()) {
    const { commit, state, held } = answers[index] as (typeof answers)[number]
    const { time } = translator.steps[index] as OracleStep
    if ('add' in op)
      await stores.add({ memory, items: op.add.map((added, i) => asHeld(added, held[i])), time })
    else if ('forget' in op)
      await stores.forget({ memory, ids: op.forget.map((number) => itemId(memory, number)), time })
    else await stores.clear({ memory, time })
    const ours = await stores.commit({ memory })
    expect({ index, state: ours?.state, commit: ours?.id }).toEqual({ index, state, commit })
  }
  return taken.length
}

const small = (number: number): NewItem => ({
  content: { type: 'text', text: String(number) },
  mime_type: 'text/plain',
})
const many = (count: number) => Array.from({ length: count }, (_, i) => small(i))
const one = { add: [small(0)] }

describe.skipIf(missing !== undefined)(
  'the outside implementation gives the same commit and state ids',
  () => {
    let stores: Stores

    beforeEach(() => {
      stores = new Stores(new MemoryEngine(), { itemsPerAdd: 100_000 })
    })

    afterEach(() => stores.close())

    test.each([1, 2, 3])('for random adds, forgets and clears (seed %d)', async (seed) => {
      const operations =
        fc.sample(fc.array(operation, { minLength: 150, maxLength: 150, size: 'max' }), {
          seed,
          numRuns: 1,
        })[0] ?? []
      expect(await compare(stores, operations)).toBeGreaterThan(100)
    })

    test.each([
      [23, 24],
      [255, 256],
    ])('where the head of a map grows: %d and %d nodes', async (below) => {
      // The counter is a node too: `below - 2` items and the counter are `below - 1` nodes.
      const operations: Operation[] = [
        { add: many(below - 2) },
        one,
        one,
        one,
        { forget: [3] },
        { forget: [0, 1] },
        one,
        one,
        one,
      ]
      expect(await compare(stores, operations)).toBe(operations.length)
    })

    test.skipIf(process.env.MNEM_TEST_SLOW !== '1')(
      'where the head of a map grows: 65,535 and 65,536 nodes (slow: npm test -- --slow)',
      async () => {
        const operations: Operation[] = [
          { add: many(65_533) },
          one,
          one,
          one,
          { forget: [9] },
          { forget: [0, 1] },
          one,
        ]
        expect(await compare(stores, operations)).toBe(operations.length)
      },
      600_000,
    )
  },
)
