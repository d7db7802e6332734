import type { JsonText } from '../src/json.ts'
import type { Stores } from '../src/stores.ts'
import type { ItemChange, NewItem } from '../src/types.ts'

export const MEMORY = 'm'

export function text(value: string): NewItem {
  return { content: { type: 'text', text: value }, mime_type: 'text/plain' }
}

export function idOf(number: number): string {
  return `${MEMORY}:${String(number).padStart(10, '0')}`
}

/** What a memory held at a commit: item number to text. */
export type Contents = ReadonlyMap<number, string>

export interface ModelCommit {
  id: string
  parent: string | undefined
  time: number
  contents: Contents
  /** Which commit gave each item its value. */
  writers: ReadonlyMap<number, string>
}

/** A step of a random history; numbers choose among what there is at that moment. */
export type Step =
  | { kind: 'add'; branch: number; texts: string[]; time: number }
  | { kind: 'forget'; branch: number; picks: number[]; time: number }
  | { kind: 'clear'; branch: number; time: number }
  | { kind: 'branch'; at: number }
  | { kind: 'switch'; branch: number }
  | { kind: 'delete'; branch: number }

/** A memory that keeps a full copy of every state, beside the real one. */
export class Model {
  readonly stores: Stores
  readonly commits = new Map<string, ModelCommit>()
  /** Branches and their heads; undefined before the first commit. */
  readonly heads = new Map<string, string | undefined>([['main', undefined]])
  /** The counter at each commit. */
  private readonly counters = new Map<string, number>()
  byDefault = 'main'
  private made = 0

  constructor(stores: Stores) {
    this.stores = stores
  }

  commit(id: string | undefined): ModelCommit | undefined {
    return id === undefined ? undefined : this.commits.get(id)
  }

  /** The commits from this one back to the root. */
  chain(id: string | undefined): ModelCommit[] {
    const found: ModelCommit[] = []
    for (let at = this.commit(id); at !== undefined; at = this.commit(at.parent)) found.push(at)
    return found
  }

  async step(step: Step): Promise<void> {
    switch (step.kind) {
      case 'add':
        return this.add(step)
      case 'forget':
        return this.forget(step)
      case 'clear':
        return this.clear(step)
      case 'branch': {
        const ids = Array.from(this.commits.keys())
        const at = ids[step.at % Math.max(ids.length, 1)]
        if (at === undefined) return
        const name = `b${++this.made}`
        await this.stores.branch({ memory: MEMORY, name, at })
        this.heads.set(name, at)
        return
      }
      case 'switch': {
        const branch = this.pick(step.branch)
        if (this.heads.get(branch) === undefined) return
        await this.stores.switch({ memory: MEMORY, branch })
        this.byDefault = branch
        return
      }
      case 'delete': {
        const name = this.pick(step.branch)
        if (name === this.byDefault || this.heads.get(name) === undefined) return
        await this.stores.deleteBranch({ memory: MEMORY, name })
        this.heads.delete(name)
      }
    }
  }

  private pick(branch: number): string {
    const names = Array.from(this.heads.keys())
    return names[branch % names.length] as string
  }

  private async add({ branch: pick, texts, time }: Extract<Step, { kind: 'add' }>): Promise<void> {
    const branch = this.pick(pick)
    const before = this.commit(this.heads.get(branch))
    const contents = new Map(before?.contents)
    const counter = (before && this.counters.get(before.id)) ?? 0
    const first = Math.max(counter, 1 + Math.max(-1, ...contents.keys()))
    const request = { memory: MEMORY, branch: this.commits.size === 0 ? undefined : branch, time }
    const { commit, ids } = await this.stores.add({ ...request, items: texts.map(text) })
    const numbers = texts.map((_, index) => first + index)
    if (ids.join() !== numbers.map(idOf).join()) throw new Error(`${ids} in place of ${numbers}`)
    for (const [index, number] of numbers.entries()) contents.set(number, texts[index] as string)
    this.note(branch, commit, time, contents, numbers)
    this.counters.set(commit, first + texts.length)
  }

  private async forget({ branch: pick, picks, time }: Extract<Step, { kind: 'forget' }>): Promise<void> {
    const branch = this.pick(pick)
    const before = this.commit(this.heads.get(branch))
    const live = Array.from(before?.contents.keys() ?? [])
    if (before === undefined || live.length === 0) return
    const numbers = Array.from(new Set(picks.map((index) => live[index % live.length] as number)))
    const { commit } = await this.stores.forget({ memory: MEMORY, branch, ids: numbers.map(idOf), time })
    const contents = new Map(before.contents)
    for (const number of numbers) contents.delete(number)
    this.note(branch, commit as string, time, contents, [])
    this.counters.set(commit as string, this.counters.get(before.id) as number)
  }

  private async clear({ branch: pick, time }: Extract<Step, { kind: 'clear' }>): Promise<void> {
    const branch = this.pick(pick)
    if (this.heads.get(branch) === undefined) return
    const { commit } = await this.stores.clear({ memory: MEMORY, branch, time })
    if (commit === null) return
    this.note(branch, commit, time, new Map(), [])
    this.counters.set(commit, 0)
  }

  private note(branch: string, id: string, time: number, contents: Contents, written: number[]): void {
    const parent = this.heads.get(branch)
    const writers = new Map(this.commit(parent)?.writers)
    for (const number of writers.keys()) if (!contents.has(number)) writers.delete(number)
    for (const number of written) writers.set(number, id)
    this.commits.set(id, { id, parent, time, contents, writers })
    this.heads.set(branch, id)
  }
}

/** The differences between two states as the store should tell them. */
export function differences(from: Contents | undefined, to: Contents | undefined): object[] {
  const numbers = Array.from(new Set([...(from?.keys() ?? []), ...(to?.keys() ?? [])])).sort((a, b) => a - b)
  return numbers.flatMap((number) => {
    const [old, now] = [from?.get(number), to?.get(number)]
    if (old === now) return []
    const kind = old === undefined ? 'added' : now === undefined ? 'removed' : 'changed'
    return [{ id: idOf(number), kind, old, new: now }]
  })
}

/** What the store tells, with each item as its text. */
export function plain(changes: readonly ItemChange[]): object[] {
  return changes.map(({ id, kind, old, new: now }) => ({ id, kind, old: textOf(old), new: textOf(now) }))
}

export function textOf(item: JsonText | null | undefined): string | undefined {
  return item ? JSON.parse(item.text).content.text : undefined
}
