import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { MemoryEngine } from '../src/engine/memory.ts'
import { SqliteEngine } from '../src/engine/sqlite.ts'
import { JsonText } from '../src/json.ts'
import { Stores } from '../src/stores.ts'
import { differences, idOf, MEMORY, Model, plain, type Step, text, textOf } from './model.ts'
import { temporaryFolder } from './temporary.ts'

const memory = MEMORY
const ABSENT = 'f'.repeat(64)

const index = fc.nat(1000)
// Few different times, so that they repeat and go backwards.
const time = fc.integer({ min: 1000, max: 1010 })
const words = fc.constantFrom('a', 'b', 'ab', 'c')
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      branch: index,
      texts: fc.array(words, { minLength: 1, maxLength: 3 }),
      time,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('forget' as const),
      branch: index,
      picks: fc.array(index, { minLength: 1, maxLength: 3 }),
      time,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const), branch: index, time }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('branch' as const), at: index }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('switch' as const), branch: index }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), branch: index }) },
)

const engines = [
  ['in memory', async () => new MemoryEngine()],
  ['SQLite', async () => SqliteEngine.open(temporaryFolder())],
] as const

describe.each(engines)('a random history, %s', (name, open) => {
  const runs = name === 'SQLite' ? 15 : 60

  /** Play a history, then look at it. */
  async function play(steps: Step[], look: (model: Model) => Promise<void>): Promise<void> {
    const stores = new Stores(await open())
    try {
      const model = new Model(stores)
      for (const each of steps) await model.step(each)
      await look(model)
    } finally {
      await stores.close()
    }
  }

  const property = (look: (model: Model) => Promise<void>) =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), (steps) => play(steps, look)),
      { numRuns: runs },
    )

  test('is read at every commit and branch as it was', () =>
    property(async ({ stores, commits, heads, byDefault }) => {
      const read = async (request: object) => {
        const { items, commit } = await stores.listing({ memory, ...request })
        return { commit, items: (items ?? []).map((item) => [JSON.parse(item.text).id, textOf(item)]) }
      }
      const expected = (id: string) =>
        Array.from(commits.get(id)?.contents ?? [], ([number, value]) => [idOf(number), value]).sort()
      for (const id of commits.keys())
        expect(await read({ at: id })).toEqual({ commit: id, items: expected(id) })
      for (const [branch, head] of heads)
        if (head !== undefined)
          expect(await read({ branch })).toEqual({ commit: head, items: expected(head) })
      const head = heads.get(byDefault)
      if (head !== undefined) expect((await read({})).commit).toBe(head)
      const { branches } = await stores.branches(memory)
      expect(branches).toEqual(
        Array.from(heads, ([name, commit]) => ({ name, commit, default: name === byDefault }))
          .filter(({ commit }) => commit !== undefined)
          .sort((a, b) => (a.name < b.name ? -1 : 1)),
      )
    }))

  test('is read at a time as the newest commit on the chain that is not later', () =>
    property(async (model) => {
      for (const [branch, head] of model.heads) {
        if (head === undefined) continue
        for (let at = 999; at <= 1011; at++) {
          const commit = model.chain(head).find((each) => each.time <= at)
          const listing = await model.stores.listing({ memory, branch, at })
          expect(listing.commit).toBe(commit?.id ?? null)
          expect(listing.count).toBe(commit?.contents.size ?? 0)
        }
      }
    }))

  test('is told by log in the order of parents', () =>
    property(async ({ stores, heads }) => {
      for (const [branch, head] of heads) {
        if (head === undefined) continue
        const { commits } = await stores.log({ memory, branch })
        expect(commits[0]?.id).toBe(head)
        for (const [position, { parents }] of commits.entries())
          expect(parents).toEqual(position + 1 < commits.length ? [commits[position + 1]?.id] : [])
      }
    }))

  test('differs between any two commits by what differs', () =>
    property(async ({ stores, commits }) => {
      const ids = Array.from(commits.keys())
      for (const from of ids) {
        for (const to of ids) {
          const { changes } = await stores.diff({ memory, from, to })
          expect(plain(changes)).toEqual(differences(commits.get(from)?.contents, commits.get(to)?.contents))
        }
      }
      for (const { id, parent, contents } of commits.values()) {
        const before = parent === undefined ? undefined : commits.get(parent)?.contents
        expect(plain((await stores.changed({ memory, commit: id })).changes)).toEqual(
          differences(before, contents),
        )
      }
    }))

  test('says why each item is what it is, and what became of it', () =>
    property(async (model) => {
      const { stores, commits, heads } = model
      for (const { id, contents, writers } of commits.values()) {
        for (const [number, value] of contents) {
          const found = await stores.why({ memory, id: idOf(number), at: id })
          expect([found.commit.id, textOf(found.item)]).toEqual([writers.get(number), value])
        }
      }
      const head = heads.get(model.byDefault)
      const chain = model.chain(head)
      const numbers = new Set(chain.flatMap(({ contents }) => Array.from(contents.keys())))
      for (const number of numbers) {
        const expected = chain.flatMap(({ id, parent, contents, writers }) => {
          const before = parent === undefined ? undefined : commits.get(parent)?.contents.get(number)
          if (writers.get(number) === id)
            return [[id, before === undefined ? 'added' : 'changed', contents.get(number)]]
          return before !== undefined && !contents.has(number) ? [[id, 'removed', undefined]] : []
        })
        const { entries } = await stores.history({ memory, id: idOf(number) })
        expect(entries.map(({ commit, kind, item }) => [commit.id, kind, textOf(item)])).toEqual(expected)
      }
    }))

  test('is searched as a search over its states would', () =>
    property(async (model) => {
      const chain = model.chain(model.heads.get(model.byDefault)).reverse()
      for (const good of [undefined, ...chain.keys()]) {
        const range = chain.slice(good === undefined ? 0 : good + 1)
        if (range.length === 0) continue
        for (const [where, holds] of conditions()) {
          const atGood = good === undefined ? new Map() : (chain[good]?.contents ?? new Map())
          const request = { memory, good: good === undefined ? undefined : chain[good]?.id, where }
          const bad = range.at(-1)?.contents ?? new Map()
          if (holds(atGood) || !holds(bad)) {
            await expect(model.stores.bisect(request)).rejects.toMatchObject({ kind: 'invalid_ref' })
            continue
          }
          let [low, high, steps] = [0, range.length, 0]
          while (low < high) {
            const middle = (low + high) >> 1
            steps++
            if (holds(range[middle]?.contents ?? new Map())) high = middle
            else low = middle + 1
          }
          const { commit, steps: taken } = await model.stores.bisect(request)
          expect([commit.id, taken]).toEqual([range[low]?.id, steps])
        }
        for (const [probe, { id }] of range.entries()) {
          const request = { memory, good: good === undefined ? undefined : chain[good]?.id, probe }
          expect(await model.stores.bisect(request)).toMatchObject({ commit: { id }, count: range.length })
        }
      }
    }))
})

type Condition = [
  where: { contains: string } | { item: string } | { count_at_least: number },
  holds: (contents: ReadonlyMap<number, string>) => boolean,
]

function conditions(): Condition[] {
  return [
    [{ contains: 'ab' }, (contents) => Array.from(contents.values()).some((value) => value.includes('ab'))],
    [{ item: idOf(1) }, (contents) => contents.has(1)],
    [{ count_at_least: 3 }, (contents) => contents.size >= 3],
  ]
}

describe('looking back', () => {
  let stores: Stores
  beforeEach(() => {
    stores = new Stores(new MemoryEngine())
  })
  afterEach(() => stores.close())

  test('an item removed and stored again unchanged under its number differs in nothing', async () => {
    const { commit: from } = await stores.add({ memory, items: [text('same'), text('b')], time: 1 })
    await stores.clear({ memory })
    const { commit: to } = await stores.add({ memory, items: [text('same'), text('c')], time: 2 })
    const { changes } = await stores.diff({ memory, from, to })
    expect(plain(changes)).toEqual([{ id: idOf(1), kind: 'changed', old: 'b', new: 'c' }])
  })

  test('diff takes times and branches, and before the first commit there is nothing', async () => {
    await stores.add({ memory, items: [text('a')], time: 1000 })
    await stores.branch({ memory, name: 'trial' })
    await stores.add({ memory, branch: 'trial', items: [text('b')], time: 2000 })
    expect(plain((await stores.diff({ memory, from: 'main', to: 'trial' })).changes)).toEqual([
      { id: idOf(1), kind: 'added', old: undefined, new: 'b' },
    ])
    expect(plain((await stores.diff({ memory, from: 1, to: 1500 })).changes)).toMatchObject([
      { kind: 'added' },
    ])
    expect((await stores.diff({ memory: 'nobody', from: 1, to: 2 })).changes).toEqual([])
  })

  test('a search for a text looks into strings and keys, not into JSON’s own signs or encoded bytes', async () => {
    const json = new JsonText('{"Schlüssel \\"x\\"":{"deep":["Nädel\\n"]},"n":12345}')
    const base64 = Buffer.from('needle in bytes').toString('base64')
    await stores.add({ memory, items: [text('plain "quoted" \u0001')], time: 1 })
    await stores.add({
      memory,
      items: [{ content: { type: 'json', json }, mime_type: 'application/json' }],
      time: 2,
    })
    await stores.add({ memory, items: [{ content: { type: 'bytes', base64 }, mime_type: 'x' }], time: 3 })
    const when = async (contains: string) =>
      (await stores.bisect({ memory, where: { contains } })).commit.time
    expect(await when('"quoted" \u0001')).toBe(1)
    expect(await when('Nädel\n')).toBe(2)
    expect(await when('Schlüssel "x"')).toBe(2)
    for (const absent of [
      'content',
      'mime_type',
      'text/plain',
      '":{"',
      base64.slice(0, 8),
      'deep":',
      '12345',
    ])
      await expect(when(absent)).rejects.toMatchObject({ kind: 'invalid_ref' })
  })

  test.each<[string, (commit: string) => Promise<unknown>, string]>([
    ['diff of no commit', (commit) => stores.diff({ memory, from: commit, to: ABSENT }), 'invalid_ref'],
    ['changed at no commit', () => stores.changed({ memory, commit: ABSENT }), 'invalid_ref'],
    ['history of no item', () => stores.history({ memory, id: idOf(7) }), 'not_found'],
    ['history of no id', () => stores.history({ memory, id: 'x' }), 'not_found'],
    [
      'bisect from a later commit',
      (commit) => stores.bisect({ memory, good: commit, bad: commit, where: { count_at_least: 1 } }),
      'invalid_ref',
    ],
    ['bisect without a condition', () => stores.bisect({ memory }), 'invalid_params'],
    ['bisect for no id', () => stores.bisect({ memory, where: { item: 'x' } }), 'not_found'],
    ['a probe past the end', () => stores.bisect({ memory, probe: 1 }), 'invalid_params'],
    [
      'in a memory that is not there, changed',
      () => stores.changed({ memory: 'no', commit: 'main' }),
      'invalid_ref',
    ],
    [
      'in a memory that is not there, history',
      () => stores.history({ memory: 'no', id: idOf(0) }),
      'not_found',
    ],
    ['in a memory that is not there, bisect', () => stores.bisect({ memory: 'no', probe: 0 }), 'invalid_ref'],
    [
      'in a memory that is not there, branch',
      () => stores.branch({ memory: 'no', name: 'x' }),
      'invalid_ref',
    ],
  ])('%s is refused by its kind', async (_what, ask, kind) => {
    const { commit } = await stores.add({ memory, items: [text('a')] })
    await expect(ask(commit)).rejects.toMatchObject({ kind })
  })
})

describe('branches', () => {
  let stores: Stores
  beforeEach(async () => {
    stores = new Stores(new MemoryEngine())
    await stores.add({ memory, items: [text('a')] })
  })
  afterEach(() => stores.close())

  test.each(['-x', 'a//b', 'a/.b', 'a.lock', 'é', '漢', '²', 'head', 'HEAD/x', 'deadbeef', 'x'.repeat(255)])(
    'may be called %j',
    async (name) => {
      const { branches } = await stores.branch({ memory, name })
      expect(branches.map((branch) => branch.name)).toContain(name)
      expect((await stores.listing({ memory, branch: name })).count).toBe(1)
    },
  )

  test.each([
    '',
    'HEAD',
    '.a',
    'a.',
    '/a',
    'a/',
    'a..b',
    'a b',
    'a\tb',
    'a@b',
    'a:b',
    'a~1',
    'a^',
    'a?',
    'a*',
    'a[',
    'a\\b',
    '😀',
    '0'.repeat(64),
    'x'.repeat(256),
    'a\ud800',
  ])('may not be called %j', async (name) => {
    await expect(stores.branch({ memory, name })).rejects.toMatchObject({
      kind: 'invalid_params',
      data: { path: 'name' },
    })
  })

  test('of one name there is one, the default one stays, and what is not there is not found', async () => {
    await stores.branch({ memory, name: 'trial' })
    await expect(stores.branch({ memory, name: 'trial' })).rejects.toMatchObject({ kind: 'conflict' })
    await expect(stores.deleteBranch({ memory, name: 'main' })).rejects.toMatchObject({ kind: 'conflict' })
    await expect(stores.deleteBranch({ memory, name: 'no' })).rejects.toMatchObject({ kind: 'not_found' })
    await expect(stores.switch({ memory, branch: 'no' })).rejects.toMatchObject({ kind: 'not_found' })
    await expect(stores.branch({ memory, name: 'x', at: ABSENT })).rejects.toMatchObject({
      kind: 'invalid_ref',
    })
    await expect(stores.branch({ memory, name: 'x', at: 1 })).rejects.toMatchObject({ kind: 'invalid_ref' })
  })

  test('that are deleted leave their commits, found by id', async () => {
    await stores.branch({ memory, name: 'trial' })
    const { commit } = await stores.add({ memory, branch: 'trial', items: [text('b')] })
    await stores.deleteBranch({ memory, name: 'trial' })
    await expect(stores.listing({ memory, branch: 'trial' })).rejects.toMatchObject({ kind: 'not_found' })
    expect((await stores.listing({ memory, at: commit })).count).toBe(2)
    await stores.branch({ memory, name: 'again', at: commit.slice(0, 12) })
    expect((await stores.listing({ memory, branch: 'again' })).commit).toBe(commit)
  })

  test('come before ids: one that is called like an id’s beginning hides it', async () => {
    const { commit } = await stores.add({ memory, items: [text('b')] })
    const prefix = commit.slice(0, 8)
    const root = (await stores.log({ memory })).commits[1]?.id
    await stores.branch({ memory, name: prefix, at: root })
    expect((await stores.listing({ memory, at: prefix })).commit).toBe(root)
    expect((await stores.listing({ memory, at: commit.slice(0, 9) })).commit).toBe(commit)
  })

  test('are switched while others write: each write goes to the branch that is the default at that moment', async () => {
    await stores.branch({ memory, name: 'trial' })
    const adds = Array.from({ length: 20 }, (_, i) => stores.add({ memory, items: [text(`${i}`)] }))
    const switched = stores.switch({ memory, branch: 'trial' })
    const more = Array.from({ length: 20 }, (_, i) => stores.add({ memory, items: [text(`${i}`)] }))
    await Promise.all([...adds, switched, ...more])
    expect((await stores.listing({ memory, branch: 'main' })).count).toBe(21)
    expect((await stores.listing({ memory })).count).toBe(21)
    expect((await stores.listing({ memory })).branch).toBe('trial')
  })
})

describe('the same add on two branches', () => {
  let stores: Stores
  beforeEach(async () => {
    stores = new Stores(new MemoryEngine())
    await stores.add({ memory, items: [text('a')], time: 1000 })
    await stores.branch({ memory, name: 'trial' })
  })
  afterEach(() => stores.close())

  test('at one moment is two commits, a millisecond apart', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 5000 })
    onTestFinished(() => {
      vi.useRealTimers()
    })
    const [one, two] = [
      await stores.add({ memory, branch: 'main', items: [text('b')] }),
      await stores.add({ memory, branch: 'trial', items: [text('b')] }),
    ]
    expect(one.commit).not.toBe(two.commit)
    const times = await Promise.all(
      [one, two].map(
        async ({ commit }) => (await stores.log({ memory, at: commit, limit: 1 })).commits[0]?.time,
      ),
    )
    expect(times).toEqual([5000, 5001])
  })

  test('at a time that the caller set is one commit, on which both branches stand', async () => {
    const add = (branch: string, key: string) =>
      stores.add({ memory, branch, items: [text('b')], time: 2000, idempotency_key: key })
    const one = await add('main', 'k1')
    const two = await add('trial', 'k2')
    expect(two).toEqual(one)
    expect((await stores.listing({ memory, at: one.commit })).count).toBe(2)
    expect((await stores.listing({ memory, branch: 'trial' })).commit).toBe(one.commit)
    expect(await add('trial', 'k2')).toEqual({ ...one, replayed: true })
    expect(await add('main', 'k1')).toEqual({ ...one, replayed: true })
    await stores.add({ memory, branch: 'trial', items: [text('c')] })
    expect((await stores.listing({ memory, branch: 'trial' })).count).toBe(3)
    expect((await stores.listing({ memory, branch: 'main' })).count).toBe(2)
    expect((await stores.stats()).commits).toBe(3)
  })
})
