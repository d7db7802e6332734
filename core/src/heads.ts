import { forwards } from './chain.ts'
import type { EngineReader, MemoryRecord, Row } from './engine/engine.ts'
import { Mutex } from './mutex.ts'
import { decodeRecord } from './record.ts'
import { headOf } from './refs.ts'
import { State } from './state.ts'

/** A commit with the state it left: what a listing is made from, and what the next commit builds on. */
export interface Snapshot {
  row: Row
  state: State
  /** Every commit deeper than this one, up to `row`, did nothing but append items. */
  appendsFrom: number
}

/** A branch's newest snapshot, undefined before its first commit; changed only by who holds `lock`. */
class Head {
  readonly lock = new Mutex()
  snapshot: Snapshot | undefined
  /** The memory's epoch when the snapshot was read: a purge changes rows that it was made from. */
  epoch = 0
}

/** Branches whose state is kept at once. */
const KEPT = 1024

/** Replay the chain of first parents up to `row`, on top of `base` where that is on the chain (it is changed then). */
export async function replay(
  reader: EngineReader,
  prefix: string,
  row: Row,
  base?: Snapshot,
): Promise<Snapshot> {
  const state = base?.state ?? new State(prefix)
  let appendsFrom = base?.appendsFrom ?? -1
  for await (const next of forwards(reader, row, base?.row)) {
    if (!state.apply(next.seq, decodeRecord(next.body))) appendsFrom = next.depth
  }
  return { row, state, appendsFrom }
}

/** The states of branch heads, kept while they are used. Another process may move a head: each use looks at the ref. */
export class Heads {
  private readonly heads = new Map<string, Head>()

  /** How many are kept now. */
  get size(): number {
    return this.heads.size
  }

  /**
   * Hand the branch's snapshot to `use`, which must take what it needs before it first awaits: a commit changes the
   * state in place.
   */
  read<T>(
    reader: EngineReader,
    memory: MemoryRecord,
    branch: string,
    use: (snapshot: Snapshot | undefined) => T,
  ): Promise<T> {
    const head = this.head(memory, branch)
    return head.lock.run(async () => use(await this.current(reader, memory, branch, head)))
  }

  /** The head itself, for one transaction: nobody else reads or changes it until `release`. */
  async hold(
    reader: EngineReader,
    memory: MemoryRecord,
    branch: string,
  ): Promise<{ head: HeldHead; release: () => void }> {
    const head = this.head(memory, branch)
    const release = await head.lock.acquire()
    try {
      await this.current(reader, memory, branch, head)
      return { head, release }
    } catch (error) {
      release()
      throw error
    }
  }

  private head(memory: MemoryRecord, branch: string): Head {
    const key = headKey(memory, branch)
    const head = this.heads.get(key) ?? new Head()
    this.heads.delete(key)
    this.heads.set(key, head)
    if (this.heads.size > KEPT) this.heads.delete(this.heads.keys().next().value as string)
    return head
  }

  private async current(
    reader: EngineReader,
    memory: MemoryRecord,
    branch: string,
    head: Head,
  ): Promise<Snapshot | undefined> {
    const kept = head.epoch === memory.epoch ? head.snapshot : undefined
    head.epoch = memory.epoch
    const seq = await reader.ref(memory.id, branch)
    if (kept !== undefined && kept.row.seq === seq) return kept
    const row = await headOf(reader, memory, branch)
    // While a replay is under way the kept state is half of each, so a failure must not leave it there.
    head.snapshot = undefined
    if (row === undefined) return undefined
    const isAhead = kept !== undefined && kept.row.line === row.line && kept.row.depth < row.depth
    head.snapshot = await replay(reader, memory.prefix, row, isAhead ? kept : undefined)
    return head.snapshot
  }
}

/** What a transaction may do with a head that it holds. */
export interface HeldHead {
  snapshot: Snapshot | undefined
}

/** The heads that the transaction under way holds. */
export class Holds {
  private readonly heads: Heads
  private readonly held = new Map<string, { head: HeldHead; release: () => void }>()

  constructor(heads: Heads) {
    this.heads = heads
  }

  async hold(reader: EngineReader, memory: MemoryRecord, branch: string): Promise<HeldHead> {
    const key = headKey(memory, branch)
    let hold = this.held.get(key)
    if (hold === undefined) {
      hold = await this.heads.hold(reader, memory, branch)
      this.held.set(key, hold)
    }
    return hold.head
  }

  /** The transaction is over; if it was not stored, the heads are read anew. */
  release(stored: boolean): void {
    for (const { head, release } of this.held.values()) {
      if (!stored) head.snapshot = undefined
      release()
    }
    this.held.clear()
  }
}

function headKey(memory: MemoryRecord, branch: string): string {
  return `${memory.id} ${branch}`
}
