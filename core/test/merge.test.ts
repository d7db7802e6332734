import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Engine } from '../src/engine/engine.ts'
import { MemoryEngine } from '../src/engine/memory.ts'
import { SqliteEngine } from '../src/engine/sqlite.ts'
import { Stores } from '../src/stores.ts'
import type { Have, Renumbering } from '../src/types.ts'
import { idOf, MEMORY, text, textOf } from './model.ts'
import { temporaryFolder } from './temporary.ts'

const memory = MEMORY

/** One add of one item: what an item is, whatever its number and text. */
type Identity = number

interface Head {
  /** Number to identity. */
  live: Map<number, Identity>
  /** Every item that its history has held. */
  held: Set<Identity>
  /** Every number that it has used since the last clear on the way. */
  used: Set<number>
  commit: string
}

interface Born {
  commit: string
  text: string
}

/** Plays branches and merges, knowing each item by the add that made it. */
class MergeModel {
  readonly stores: Stores
  readonly heads = new Map<string, Head>()
  readonly born = new Map<Identity, Born>()
  private made = 0

  constructor(stores: Stores) {
    this.stores = stores
  }

  static async begin(engine: Engine, texts: string[]): Promise<MergeModel> {
    const model = new MergeModel(new Stores(engine))
    model.heads.set('main', { live: new Map(), held: new Set(), used: new Set(), commit: '' })
    await model.add('main', texts)
    return model
  }

  head(branch: string): Head {
    return this.heads.get(branch) as Head
  }

  pick(index: number): string {
    return Array.from(this.heads.keys())[index % this.heads.size] as string
  }

  async add(branch: string, texts: string[]): Promise<void> {
    const head = this.head(branch)
    const { commit, ids } = await this.stores.add({
      memory,
      branch: this.made === 0 ? undefined : branch,
      items: texts.map(text),
    })
    for (const [index, id] of ids.entries()) {
      const identity = ++this.made
      const number = Number(id.slice(-10))
      // No number names two items, not even one that is forgotten.
      expect(head.used.has(number)).toBe(false)
      head.used.add(number)
      head.live.set(number, identity)
      head.held.add(identity)
      this.born.set(identity, { commit, text: texts[index] as string })
    }
    head.commit = commit
  }

  async forget(branch: string, picks: number[]): Promise<void> {
    const head = this.head(branch)
    const numbers = Array.from(head.live.keys())
    if (numbers.length === 0) return
    const chosen = Array.from(new Set(picks.map((pick) => numbers[pick % numbers.length] as number)))
    const { commit } = await this.stores.forget({ memory, branch, ids: chosen.map(idOf) })
    for (const number of chosen) head.live.delete(number)
    head.commit = commit as string
  }

  async clear(branch: string): Promise<void> {
    const head = this.head(branch)
    const { commit } = await this.stores.clear({ memory, branch })
    if (commit === null) return
    head.live.clear()
    head.used.clear()
    head.commit = commit
  }

  async fork(branch: string): Promise<void> {
    const name = `b${this.heads.size}`
    const head = this.head(branch)
    await this.stores.branch({ memory, name, at: branch })
    this.heads.set(name, {
      live: new Map(head.live),
      held: new Set(head.held),
      used: new Set(head.used),
      commit: head.commit,
    })
  }

  /** Merge, and see that the result is what the two histories say. */
  async merge(from: string, into: string): Promise<void> {
    const [ours, theirs] = [this.head(into), this.head(from)]
    const result = await this.stores.merge({ memory, from, into })
    expect(result.status).not.toBe('conflicts')
    if (result.status === 'up_to_date') return
    const now = await this.read(into)
    if (result.status === 'fast_forward') {
      expect(now).toEqual(await this.read(from))
      const moved = renumbering(result.renumbered)
      for (const [number, identity] of ours.live) {
        const to = Array.from(theirs.live).find(([, other]) => other === identity)?.[0]
        if (to !== undefined) expect(moved.get(number) ?? number).toBe(to)
      }
      this.heads.set(into, {
        ...theirs,
        live: new Map(theirs.live),
        held: new Set(theirs.held),
        used: new Set(theirs.used),
      })
      return
    }
    const live = new Map<number, Identity>()
    // Ours keeps its numbers, less what theirs had and forgot.
    const inTheirs = new Set(theirs.live.values())
    for (const [number, identity] of ours.live)
      if (inTheirs.has(identity) || !theirs.held.has(identity)) live.set(number, identity)
    const moved = renumbering(result.renumbered)
    const incoming = Array.from(theirs.live)
      .sort(([a], [b]) => a - b)
      .filter(([, identity]) => !ours.held.has(identity))
    let last = -1
    for (const [number, identity] of incoming) {
      const to = moved.get(number) ?? number
      expect(to).toBeGreaterThan(last)
      expect(ours.used.has(to)).toBe(false)
      if (to !== number) expect(theirs.used.has(to)).toBe(false)
      live.set(to, identity)
      last = to
    }
    // Nothing of theirs was renumbered that did not come in.
    expect(Array.from(moved.keys()).every((number) => incoming.some(([own]) => own === number))).toBe(true)
    const held = new Set([...ours.held, ...theirs.held])
    const used = new Set([...ours.used, ...theirs.used, ...live.keys()])
    this.heads.set(into, { live, held, used, commit: result.commit as string })
    expect(now).toEqual(this.expected(into))
    // To merge again changes nothing.
    expect((await this.stores.merge({ memory, from, into })).status).toBe('up_to_date')
  }

  expected(branch: string): [string, string | undefined][] {
    return Array.from(this.head(branch).live)
      .sort(([a], [b]) => a - b)
      .map(([number, identity]) => [idOf(number), this.born.get(identity)?.text])
  }

  async read(branch: string): Promise<[string, string | undefined][]> {
    const { items = [] } = await this.stores.listing({ memory, branch })
    return items.map((item) => [JSON.parse(item.text).id, textOf(item)])
  }

  /** What a reader holds of each branch name, as the Python client does. */
  private readonly readers = new Map<string, { have: Have; items: string[] }>()

  /** A reader who says what it holds gets to what is there, also where the branch's name stands for another one now. */
  async checkHave(): Promise<void> {
    // Of any branch, whatever it was read from: a caller may switch between them.
    for (const branch of [...this.heads.keys(), ...this.heads.keys()]) {
      for (const key of [branch, 'all']) {
        const held = this.readers.get(key)
        const answer = await this.stores.listing({ memory, branch, have: held?.have })
        const items = (answer.items ?? []).map((item) => item.text)
        const now =
          answer.mode === 'unchanged'
            ? (held?.items ?? [])
            : answer.mode === 'appended'
              ? [...(held?.items ?? []), ...items]
              : items
        const whole = await this.stores.listing({ memory, branch })
        expect(now).toEqual((whole.items ?? []).map((item) => item.text))
        const have = { commit: answer.commit as string, count: now.length, epoch: answer.epoch }
        this.readers.set(key, { have, items: now })
      }
    }
  }

  /** Each item is traced to the add that made it, at whatever number it stands. */
  async checkWhy(): Promise<void> {
    for (const [branch, { live }] of this.heads) {
      for (const [number, identity] of live) {
        const { commit, item } = await this.stores.why({ memory, branch, id: idOf(number) })
        const born = this.born.get(identity)
        expect([commit.id, textOf(item)]).toEqual([born?.commit, born?.text])
        expect(JSON.parse(item.text).id).toBe(idOf(number))
        const { entries } = await this.stores.history({ memory, branch, id: idOf(number) })
        expect(entries.map((entry) => entry.commit.id)).toContain(born?.commit)
      }
    }
  }

  /** The log has every commit once, children before parents. */
  async checkLog(): Promise<void> {
    for (const branch of this.heads.keys()) {
      const { commits } = await this.stores.log({ memory, branch, limit: 10_000 })
      const place = new Map(commits.map(({ id }, index) => [id, index]))
      expect(place.size).toBe(commits.length)
      for (const [index, { parents }] of commits.entries())
        for (const parent of parents) expect(place.get(parent)).toBeGreaterThan(index)
      const paged = []
      for (let after: string | undefined; ; ) {
        const page = await this.stores.log({ memory, branch, limit: 3, after })
        paged.push(...page.commits)
        if (page.next === undefined) break
        after = page.next
      }
      expect(paged).toEqual(commits)
    }
  }
}

function renumbering(runs: readonly Renumbering[] = []): Map<number, number> {
  const moved = new Map<number, number>()
  for (const { from, to, count } of runs)
    for (let i = 0; i < count; i++) moved.set(Number(from.slice(-10)) + i, Number(to.slice(-10)) + i)
  return moved
}

const index = fc.nat(1000)
const texts = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 })
type Play = (model: MergeModel) => Promise<void>
const play: fc.Arbitrary<Play> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.tuple(index, texts).map(
      ([at, some]): Play =>
        (model) =>
          model.add(model.pick(at), some),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(index, fc.array(index, { minLength: 1, maxLength: 3 })).map(
      ([at, picks]): Play =>
        (model) =>
          model.forget(model.pick(at), picks),
    ),
  },
  {
    weight: 1,
    arbitrary: index.map(
      (at): Play =>
        (model) =>
          model.clear(model.pick(at)),
    ),
  },
  {
    weight: 2,
    arbitrary: index.map(
      (at): Play =>
        async (model) =>
          model.heads.size < 4 ? model.fork(model.pick(at)) : undefined,
    ),
  },
  {
    weight: 4,
    arbitrary: fc.tuple(index, index).map(
      ([from, into]): Play =>
        (model) =>
          model.merge(model.pick(from), model.pick(into)),
    ),
  },
)

const engines = [
  ['in memory', async () => new MemoryEngine(), Number(process.env.MNEM_MERGE_RUNS ?? 300)],
  ['SQLite', async () => SqliteEngine.open(temporaryFolder()), 20],
] as const

describe.each(engines)('random branches and merges, %s', (_name, open, numRuns) => {
  test('keep what either side added and nothing that either forgot, with every item at its first writer', async () => {
    await fc.assert(
      fc.asyncProperty(texts, fc.array(play, { minLength: 5, maxLength: 30 }), async (first, plays) => {
        const model = await MergeModel.begin(await open(), first)
        try {
          for (const step of plays) {
            await step(model)
            await model.checkHave()
          }
          for (const branch of model.heads.keys())
            expect(await model.read(branch)).toEqual(model.expected(branch))
          await model.checkWhy()
          await model.checkLog()
        } finally {
          await model.stores.close()
        }
      }),
      { numRuns },
    )
  })

  test('gathered into one branch and merged back leave all heads equal', async () => {
    await fc.assert(
      fc.asyncProperty(texts, fc.array(play, { minLength: 5, maxLength: 20 }), async (first, plays) => {
        const model = await MergeModel.begin(await open(), first)
        try {
          for (const step of plays) await step(model)
          const branches = Array.from(model.heads.keys()).filter((name) => name !== 'main')
          for (const from of branches) await model.merge(from, 'main')
          for (const into of branches) await model.merge('main', into)
          const heads = (await model.stores.branches(memory)).branches.map(({ commit }) => commit)
          expect(new Set(heads).size).toBe(1)
        } finally {
          await model.stores.close()
        }
      }),
      { numRuns: Math.ceil(numRuns / 5) },
    )
  })
})

/** The table of shared/merge.md: what each side does to p and q, and what the merge holds, with the counter. */
type Side = (
  add: (...names: string[]) => Promise<void>,
  forget: (...names: string[]) => Promise<void>,
  clear: () => Promise<void>,
) => Promise<void>

const TABLE: Array<[what: string, ours: Side, theirs: Side, result: string, counter: number | undefined]> = [
  ['+x | +y', (add) => add('x'), (add) => add('y'), 'p0 q1 x2 y3', 4],
  [
    '+x | +y +z',
    (add) => add('x'),
    async (add) => {
      await add('y')
      await add('z')
    },
    'p0 q1 x2 y4 z5',
    6,
  ],
  ['forget 0 | +y', (_, forget) => forget('p'), (add) => add('y'), 'q1 y2', 3],
  [
    '+x, forget it | +y',
    async (add, forget) => {
      await add('x')
      await forget('x')
    },
    (add) => add('y'),
    'p0 q1 y3',
    4,
  ],
  [
    '+x | +y +z, forget y',
    (add) => add('x'),
    async (add, forget) => {
      await add('y')
      await add('z')
      await forget('y')
    },
    'p0 q1 x2 z3',
    4,
  ],
  ['clear | +y', (_, __, clear) => clear(), (add) => add('y'), 'y2', 3],
  ['+x | clear', (add) => add('x'), (_, __, clear) => clear(), 'x2', 3],
  [
    'clear, +a +b | clear, +c',
    async (add, _, clear) => {
      await clear()
      await add('a')
      await add('b')
    },
    async (add, _, clear) => {
      await clear()
      await add('c')
    },
    'a0 b1 c2',
    3,
  ],
  ['clear | forget 1', (_, __, clear) => clear(), (_, forget) => forget('q'), '', 2],
  ['clear | clear', (_, __, clear) => clear(), (_, __, clear) => clear(), '', undefined],
]

test.each(TABLE)('from p0 q1: %s', async (_what, ours, theirs, result, counter) => {
  const { stores, side, shown } = await begin()
  await stores.branch({ memory, name: 'theirs' })
  await ours(...side('main'))
  await theirs(...side('theirs'))
  expect((await stores.merge({ memory, from: 'theirs' })).status).toBe('merged')
  expect(await shown()).toBe(result)
  await stores.add({ memory, items: [text('next')] })
  expect((await shown()).split(' ').at(-1)).toBe(`next${counter ?? 0}`)
})

test('what was merged and is forgotten on one side is gone under its new number too', async () => {
  const { stores, side, shown } = await begin()
  await stores.branch({ memory, name: 'theirs' })
  await side('main')[0]('x')
  await side('theirs')[0]('y')
  const { renumbered, commit } = await stores.merge({ memory, from: 'theirs' })
  expect(renumbered).toEqual([{ from: idOf(2), to: idOf(3), count: 1 }])
  const parents = (await stores.log({ memory, limit: 1 })).commits[0]?.parents
  expect(parents).toHaveLength(2)
  await side('theirs')[1]('y')
  expect((await stores.merge({ memory, from: 'theirs' })).status).toBe('merged')
  expect(await shown()).toBe('p0 q1 x2')
  expect((await stores.listing({ memory, at: commit })).count).toBe(4)
})

test('a criss-cross of merges ends with each item once', async () => {
  const { stores, side, shown } = await begin()
  await stores.branch({ memory, name: 'theirs' })
  await side('main')[0]('x')
  await side('theirs')[0]('y')
  await stores.branch({ memory, name: 'old-main', at: 'main' })
  await stores.branch({ memory, name: 'old-theirs', at: 'theirs' })
  await stores.merge({ memory, from: 'old-theirs', into: 'main' })
  await side('main')[0]('c')
  await stores.merge({ memory, from: 'old-main', into: 'theirs' })
  await side('theirs')[0]('d')
  await stores.merge({ memory, from: 'theirs', into: 'main' })
  expect(await shown()).toBe('p0 q1 x2 y3 c4 d5')
})

test('a merge is one commit under its key, tells by its words what it did, and is refused by kind', async () => {
  const { stores, side } = await begin()
  await stores.branch({ memory, name: 'theirs' })
  await side('main')[0]('x')
  await side('theirs')[0]('y')
  const request = { memory, from: 'theirs', idempotency_key: 'k', author: 'me' }
  const first = await stores.merge(request)
  expect(await stores.merge(request)).toEqual({ ...first, replayed: true })
  const { commits } = await stores.log({ memory, limit: 1 })
  expect(commits[0]).toMatchObject({ id: first.commit, message: 'merge theirs into main', author: 'me' })
  const none = { memory, from: 'theirs', idempotency_key: 'none' }
  expect(await stores.merge(none)).toEqual({ status: 'up_to_date' })
  expect(await stores.merge(none)).toEqual({ status: 'up_to_date', replayed: true })
  const forward = { memory, from: 'main', into: 'theirs', idempotency_key: 'forward' }
  expect(await stores.merge(forward)).toMatchObject({ status: 'fast_forward', commit: first.commit })
  expect(await stores.merge(forward)).toMatchObject({ status: 'fast_forward', replayed: true })
  const refused = (change: object) => stores.merge({ memory, from: 'theirs', ...change } as never)
  await expect(refused({ from: 'nowhere' })).rejects.toMatchObject({ kind: 'invalid_ref' })
  await expect(refused({ into: 'nowhere' })).rejects.toMatchObject({ kind: 'not_found' })
  await expect(refused({ strategy: 'both' })).rejects.toMatchObject({ kind: 'invalid_params' })
  await expect(refused({ memory: 'nobody' })).rejects.toMatchObject({ kind: 'invalid_ref' })
})

async function begin() {
  const stores = new Stores(new MemoryEngine())
  await stores.add({ memory, items: [text('p')] })
  await stores.add({ memory, items: [text('q')] })
  const names = async (branch: string) => {
    const { items = [] } = await stores.listing({ memory, branch })
    return items.map((item) => ({ name: textOf(item) as string, id: JSON.parse(item.text).id as string }))
  }
  const side = (branch: string): Parameters<Side> => [
    async (...added) => {
      for (const name of added) await stores.add({ memory, branch, items: [text(name)] })
    },
    async (...forgotten) => {
      const ids = (await names(branch)).filter(({ name }) => forgotten.includes(name)).map(({ id }) => id)
      await stores.forget({ memory, branch, ids })
    },
    async () => {
      await stores.clear({ memory, branch })
    },
  ]
  const shown = async () =>
    (await names('main')).map(({ name, id }) => `${name}${Number(id.slice(-10))}`).join(' ')
  return { stores, side, shown }
}
