import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { MemoryEngine } from '../../core/src/engine/memory.ts'
import { type NewItem, Stores } from '../../core/src/index.ts'
import { packItem } from '../../core/src/item.ts'
import { counterId } from '../../core/src/names.ts'
import { oracleMissing } from './oracle.ts'

/**
 * Random histories with branches and merges, made by the outside implementation and by us: equal ids of commits and
 * states, and equal answers wherever both define them. What differs on purpose is in docs/compatibility.md.
 */

const missing = oracleMissing()
const memory = 'prefs'
const author = 'agent'
/** Together some 2,000 operations. */
const SEEDS = [1, 2, 3, 4, 5]
const ROUNDS = 40

class Oracle {
  private readonly child: ChildProcessByStdio<Writable, Readable, null>
  private readonly lines: AsyncIterator<string>

  constructor() {
    const python = fileURLToPath(new URL('../../.venv/bin/python', import.meta.url))
    const script = fileURLToPath(new URL('./history_oracle.py', import.meta.url))
    this.child = spawn(python, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
    onTestFinished(() => {
      this.child.kill()
    })
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]()
  }

  // biome-ignore lint/suspicious/noExplicitAny: each request has an answer of its own.
  async ask(what: string, fields: object): Promise<any> {
    this.child.stdin.write(`${JSON.stringify({ do: what, ...fields })}\n`)
    const { value, done } = await this.lines.next()
    if (done) throw new Error('the outside implementation ended; its words are above')
    return JSON.parse(value)
  }
}

/** A generator of numbers that a seed decides (mulberry32). */
function random(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const text = (value: string): NewItem => ({ content: { type: 'text', text: value }, mime_type: 'text/plain' })

/** One history in both. */
class Pair {
  readonly oracle = new Oracle()
  readonly stores = new Stores(new MemoryEngine())
  readonly commits: string[] = []
  readonly random: (below: number) => number
  operations = 0
  private time = 1_757_000_000_000

  constructor(seed: number) {
    this.random = random(seed)
  }

  /** One change on a branch, of a kind that is allowed there; gives what it was. */
  async change(branch: string, may: readonly ('add' | 'forget' | 'clear')[], mark = ''): Promise<void> {
    const kind = may[this.random(may.length)]
    const request = {
      memory,
      branch: this.commits.length === 0 ? undefined : branch,
      author,
      time: ++this.time,
    }
    const live = this.commits.length === 0 ? [] : await this.live(branch)
    if (kind === 'add') {
      const items = Array.from({ length: 1 + this.random(3) }, () =>
        text(`${'abc'[this.random(3)]}${this.random(20)}${mark}`),
      )
      const { commit, ids } = await this.stores.add({ ...request, items })
      const next = Number(ids.at(-1)?.slice(-10)) + 1
      const nodes = ids.map((id, index) => [
        id,
        JSON.parse(packItem(items[index] as NewItem, '', 9999).content),
      ])
      const message = ids.length === 1 ? `add item to ${memory}` : `add ${ids.length} items to ${memory}`
      await this.same(branch, commit, { add: [...nodes, [counterId(memory), next]], rm: [], message })
    } else if (kind === 'forget' && live.length > 0) {
      const ids = Array.from(
        new Set([live[this.random(live.length)], live[this.random(live.length)]]),
      ) as string[]
      const { commit } = await this.stores.forget({ ...request, ids })
      const message = ids.length === 1 ? `forget ${ids[0]}` : `forget ${ids.length} nodes`
      await this.same(branch, commit, { add: [], rm: ids, message })
    } else if (kind === 'clear') {
      const { commit } = await this.stores.clear(request)
      if (commit === null) return
      const rm = [...live, counterId(memory)]
      const message = rm.length === 1 ? 'forget 1 node' : `forget ${rm.length} nodes`
      await this.same(branch, commit, { add: [], rm, message })
    }
  }

  async branch(name: string, at: string): Promise<void> {
    this.operations++
    await this.stores.branch({ memory, name, at })
    expect(await this.oracle.ask('branch', { name, at })).toBeNull()
  }

  /** A merge that both define: equal to the id of its commit. */
  async merge(from: string, into: string): Promise<void> {
    this.operations++
    const time = ++this.time
    const ours = await this.stores.merge({ memory, from, into, author, time })
    const message = `merge ${from} into ${into}`
    const theirs = await this.oracle.ask('merge', { from, into, message, author, time })
    const status: Record<string, string> = {
      up_to_date: 'up-to-date',
      fast_forward: 'fast-forwarded',
      merged: 'merged',
    }
    expect(theirs).toMatchObject({ status: status[ours.status], commit: ours.commit ?? null })
    if (ours.commit !== undefined) this.commits.push(ours.commit)
  }

  /** A merge that the reference calls a conflict on numbers, and ours does not. Nothing is written there. */
  async differsOnMerge(from: string, into: string): Promise<void> {
    const theirs = await this.oracle.ask('merge', { from, into, message: 'x', author, time: ++this.time })
    expect(theirs.status).toBe('conflicts')
    expect(theirs.conflicts.length).toBeGreaterThan(0)
  }

  async look(): Promise<void> {
    const { branches } = await this.stores.branches(memory)
    for (const { name } of branches) {
      const log = await this.stores.log({ memory, branch: name, limit: 10_000, first_parent: true })
      expect(log.commits.map(({ id }) => id)).toEqual(
        await this.oracle.ask('log', { branch: name, first_parent: true }),
      )
      // All that is reachable; the reference orders it by time.
      const all = await this.stores.log({ memory, branch: name, limit: 10_000 })
      const theirs: string[] = await this.oracle.ask('log', { branch: name, first_parent: false })
      expect(all.commits.map(({ id }) => id).sort()).toEqual(theirs.sort())
      await this.lookAt(name, log.commits.at(-1)?.id as string)
    }
    const [from, to] = [this.pick(), this.pick()]
    const { changes } = await this.stores.diff({ memory, from, to })
    expect(plain(changes)).toEqual(withoutCounter(await this.oracle.ask('diff', { from, to })))
    const changed = await this.stores.changed({ memory, commit: from })
    expect(plain(changed.changes)).toEqual(
      withoutCounter(Object.entries(await this.oracle.ask('changed', { commit: from }))),
    )
  }

  private async lookAt(branch: string, root: string): Promise<void> {
    const ids = await this.live(branch)
    for (let i = 0; i < 3 && ids.length > 0; i++) {
      const id = ids[this.random(ids.length)] as string
      const { commit } = await this.stores.why({ memory, branch, id })
      expect(commit.id).toBe(await this.oracle.ask('blame', { id, at: branch }))
    }
    const contains = `${'abc'[this.random(3)]}${this.random(20)}`
    const head = (await this.stores.log({ memory, branch, limit: 1 })).commits[0]?.id
    const theirs = await this.oracle.ask('bisect', { good: root, bad: head, contains })
    const ours = await this.stores
      .bisect({ memory, branch, good: root, bad: head, where: { contains } })
      .then(({ commit }) => commit.id)
      .catch((error) => ({ refused: error.kind }))
    if (typeof ours === 'string') expect(ours).toBe(theirs)
    else expect([ours.refused, theirs.refused]).toEqual(['invalid_ref', 'InvalidRefError'])
  }

  private async live(branch: string): Promise<string[]> {
    const { items = [] } = await this.stores.listing({ memory, branch })
    return items.map((item) => JSON.parse(item.text).id)
  }

  private pick(): string {
    return this.commits[this.random(this.commits.length)] as string
  }

  private async same(
    branch: string,
    commit: string | null,
    fields: { add: unknown[]; rm: string[]; message: string },
  ): Promise<void> {
    this.operations++
    const theirs = await this.oracle.ask('commit', { branch, ...fields, author, time: this.time })
    const [ours] = (
      await this.stores.log({ memory, branch: this.commits.length === 0 ? undefined : branch, limit: 1 })
    ).commits
    expect({ commit: ours?.id, state: ours?.state }).toEqual(theirs)
    expect(commit).toBe(theirs.commit)
    this.commits.push(theirs.commit)
  }
}

function plain(changes: readonly { id: string; kind: string }[]): [string, string][] {
  return changes.map(({ id, kind }) => [id, kind])
}

/** The reference shows the counter, which is no item here, and has another word. */
function withoutCounter(changes: readonly [string, unknown][]): [string, unknown][] {
  return changes
    .filter(([id]) => id !== counterId(memory))
    .map(([id, kind]): [string, unknown] => [id, kind === 'modified' ? 'changed' : kind])
    .sort(([a], [b]) => (a < b ? -1 : 1))
}

test.skipIf(missing !== undefined).each(SEEDS)(
  'a random history with branches and merges, seed %i',
  async (seed) => {
    const pair = new Pair(seed)
    await pair.change('main', ['add'])
    for (let round = 0; round < ROUNDS; round++) {
      const branch = `b${round}`
      await pair.branch(branch, 'main')
      // One side may add, both may forget: what both implementations merge in the same way.
      const [adding, other] = pair.random(2) === 0 ? ['main', branch] : [branch, 'main']
      for (let i = pair.random(6); i > 0; i--) await pair.change(adding, ['add', 'add', 'forget'])
      for (let i = pair.random(4); i > 0; i--) await pair.change(other, ['forget'])
      await pair.merge(branch, 'main')
      if (round % 4 === 0) {
        await pair.look()
        const apart = `c${round}`
        await pair.branch(apart, 'main')
        await pair.change('main', ['add'])
        await pair.change(apart, ['add'])
        await pair.differsOnMerge(apart, 'main')
      }
      if (round % 10 === 9) await pair.change('main', ['clear'])
      if (round % 10 === 9) await pair.change('main', ['add'])
    }
    await pair.look()
    expect(pair.operations).toBeGreaterThan(200)
    await pair.stores.close()
  },
  120_000,
)
