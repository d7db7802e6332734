import { bisect } from './bisect.ts'
import { checkBranchName, createBranch, deleteBranch, listBranches, switchBranch } from './branches.ts'
import { compare } from './compare.ts'
import type { Engine, EngineWriter, MemoryRecord } from './engine/engine.ts'
import { SqliteEngine } from './engine/sqlite.ts'
import { MnemError } from './errors.ts'
import { Heads, Holds } from './heads.ts'
import { history, log, showCommit, why } from './history.ts'
import { toHex } from './id.ts'
import { list } from './listing.ts'
import { checkMemoryName, checkText, noSuchItem } from './names.ts'
import { headOf, noSuchBranch, resolve, unknownCommit } from './refs.ts'
import type {
  AddRequest,
  AddResult,
  At,
  Bisect,
  BisectRequest,
  BranchList,
  BranchRequest,
  ChangedRequest,
  Changes,
  Commit,
  DiffRequest,
  ForgetRequest,
  ForgetResult,
  History,
  HistoryRequest,
  Listing,
  ListingRequest,
  Log,
  LogRequest,
  MemoriesRequest,
  MemoryInfo,
  MemoryStats,
  MergeRequest,
  MergeResult,
  Stats,
  VerifyRequest,
  VerifyResult,
  Why,
  WhyRequest,
  WriteRequest,
} from './types.ts'
import { rebuildIndex, verify } from './verify.ts'
import { type WriteControl, WriteQueue } from './write-queue.ts'
import {
  DEFAULT_BRANCH,
  prepareAdd,
  prepareClear,
  prepareForget,
  prepareMerge,
  type Transaction,
  type WriteLimits,
} from './writes.ts'

export interface OpenOptions {
  /** Milliseconds a write waits for another process's lock before it is `busy`. Default 10,000. */
  busyTimeout?: number
  /** Bytes of items' JSON in one listing; a longer one comes in parts (`more`). Default 24 MiB. */
  listingBytes?: number
  /** Bytes of one item as stored. Default 8 MiB. */
  itemBytes?: number
  /** Items in one add. Default 10,000. */
  itemsPerAdd?: number
  /** Told of each transaction that is on disk. */
  onTransaction?: (transaction: TransactionInfo) => void
}

/** What one transaction was. */
export interface TransactionInfo {
  /** Writes that shared it, and so its fsync. */
  writes: number
  /** Milliseconds that its COMMIT took, the fsync with it; 0 where the engine has none. */
  commitMs: number
}

const MiB = 1024 * 1024
const DEFAULT_PAGE = 1000

/** Open the store directory, making it where it is missing. Throws `MnemError`: `store_io`, `corrupt_store`, `busy`. */
export async function openStores(dir: string, options: OpenOptions = {}): Promise<Stores> {
  const { busyTimeout, onTransaction } = options
  let commitMs = 0
  const engine = await SqliteEngine.open(dir, {
    ...(busyTimeout === undefined ? {} : { busyTimeout }),
    onCommit: (ms) => {
      commitMs = ms
    },
  })
  return new Stores(engine, options, (writes) => onTransaction?.({ writes, commitMs }))
}

/**
 * All memories of one store directory. Every method rejects with a `MnemError` that says what to do. Writes take effect
 * in the order in which the calls are made; a read sees every write that was resolved before it.
 */
export class Stores {
  private readonly engine: Engine
  private readonly heads = new Heads()
  private readonly queue: WriteQueue
  private readonly limits: WriteLimits
  private readonly listingBytes: number
  private readonly holds = new Holds(this.heads)
  /** Memories in which damage was seen: they are read as far as they can be, and not written to again. */
  private readonly damaged = new Map<string, MnemError>()

  /** `onStored` is told after each transaction how many writes it stored. */
  constructor(engine: Engine, options: OpenOptions = {}, onStored: (writes: number) => void = () => {}) {
    this.engine = engine
    this.queue = new WriteQueue(engine, (stored, writes) => {
      this.holds.release(stored)
      if (stored) onStored(writes)
    })
    this.limits = { itemBytes: options.itemBytes ?? 8 * MiB, itemsPerAdd: options.itemsPerAdd ?? 10_000 }
    this.listingBytes = options.listingBytes ?? 24 * MiB
  }

  /** Add items, all in one commit or none. Their content is read before this returns, and may be changed after. */
  add(request: AddRequest, control?: WriteControl): Promise<AddResult> {
    return this.write(request.memory, () => prepareAdd(request, this.limits), control)
  }

  /** Forget every item and begin numbering anew; what was there stays in the history. */
  clear(request: WriteRequest, control?: WriteControl): Promise<ForgetResult> {
    return this.write(request.memory, () => prepareClear(request), control)
  }

  /** Forget these items, all of them or none. */
  forget(request: ForgetRequest, control?: WriteControl): Promise<ForgetResult> {
    return this.write(request.memory, () => prepareForget(request, this.limits), control)
  }

  /** The items at the head, or at `at`: what `query`, `update_context` and `show` answer from. */
  listing(request: ListingRequest): Promise<Listing> {
    return this.read(request, {
      none: (branch): Listing => {
        const omitted =
          request.max_items !== undefined || request.max_bytes !== undefined ? { omitted: 0 } : {}
        return { commit: null, epoch: 0, branch, count: 0, mode: 'full', items: [], ...omitted }
      },
      found: (memory) => list(this.engine, this.heads, memory, request, this.listingBytes),
    })
  }

  /** The commit that `at` names on this branch (default: its head); null where there is none yet. */
  commit(request: {
    memory: string
    branch?: string | undefined
    at?: At | undefined
  }): Promise<Commit | null> {
    return this.read(request, {
      none: () => null,
      found: async (memory) => {
        const row = await resolve(this.engine, memory, request.branch, request.at)
        return row === undefined ? null : showCommit(this.engine, row)
      },
    })
  }

  /** Commits, children before parents. */
  log(request: LogRequest): Promise<Log> {
    return this.read(request, {
      none: (): Log => {
        if (request.after !== undefined)
          throw unknownCommit(request.memory, request.after, 'nobody has written to it')
        return { commits: [] }
      },
      found: (memory) => log(this.engine, memory, request),
    })
  }

  /** The commit that gave an item its value, and the item. */
  why(request: WhyRequest): Promise<Why> {
    return this.read(request, {
      none: () => {
        throw noSuchItem(request.memory, request.id)
      },
      found: (memory) => why(this.engine, memory, request),
    })
  }

  /** The items that differ between two commits. */
  diff(request: DiffRequest): Promise<Changes> {
    return this.read(
      { memory: request.memory, branch: request.branch },
      {
        none: (): Changes => {
          const named = [request.from, request.to].find(
            (at) => typeof at === 'string' && at !== DEFAULT_BRANCH,
          )
          if (named !== undefined)
            throw unknownCommit(request.memory, String(named), 'nobody has written to it')
          return { changes: [] }
        },
        found: async (memory) => {
          const from = await resolve(this.engine, memory, request.branch, request.from)
          const to = await resolve(this.engine, memory, request.branch, request.to)
          return { changes: await compare(this.engine, memory, from, to) }
        },
      },
    )
  }

  /** What a commit changed against its first parent. */
  changed({ memory: name, commit }: ChangedRequest): Promise<Changes> {
    return this.read(
      { memory: name },
      {
        none: () => {
          throw unknownCommit(name, commit, 'nobody has written to it')
        },
        found: async (memory) => {
          const row = await resolve(this.engine, memory, undefined, commit)
          if (row === undefined) throw unknownCommit(name, commit, 'there is no commit there yet')
          const [first] = row.parents
          const parent = first === undefined ? undefined : (await this.engine.rows(memory.id, [first]))[0]
          return { changes: await compare(this.engine, memory, parent, row) }
        },
      },
    )
  }

  /** Every commit that set an item or removed it. */
  history(request: HistoryRequest): Promise<History> {
    return this.read(request, {
      none: () => {
        throw noSuchItem(request.memory, request.id)
      },
      found: (memory) => history(this.engine, memory, request),
    })
  }

  /** The first commit on the first-parent chain where a condition holds. */
  bisect(request: BisectRequest): Promise<Bisect> {
    return this.read(
      { memory: request.memory, branch: request.branch },
      {
        none: () => {
          throw unknownCommit(
            request.memory,
            String(request.bad ?? DEFAULT_BRANCH),
            'nobody has written to it',
          )
        },
        found: (memory) => bisect(this.engine, memory, request),
      },
    )
  }

  /** The branches of a memory. */
  branches(name: string): Promise<BranchList> {
    return this.read(
      { memory: name },
      { none: () => ({ branches: [] }), found: (memory) => listBranches(this.engine, memory) },
    )
  }

  /** Make a branch at the head or at `at`. */
  branch({ memory, name, at }: BranchRequest, control?: WriteControl): Promise<BranchList> {
    return this.changeBranches(
      memory,
      () => checkBranchName(name),
      control,
      (writer, record) => createBranch(writer, record, name, at),
    )
  }

  /** Make another branch the default one. */
  switch(
    { memory, branch }: { memory: string; branch: string },
    control?: WriteControl,
  ): Promise<BranchList> {
    return this.changeBranches(
      memory,
      () => checkText(branch, 'branch'),
      control,
      (writer, record) => switchBranch(writer, record, branch),
    )
  }

  /** Delete a branch that is not the default one; its commits stay. */
  deleteBranch(
    { memory, name }: { memory: string; name: string },
    control?: WriteControl,
  ): Promise<BranchList> {
    return this.changeBranches(
      memory,
      () => checkText(name, 'name'),
      control,
      (writer, record) => deleteBranch(writer, record, name),
    )
  }

  /** Merge a commit into a branch, keeping the items of both. */
  merge(request: MergeRequest, control?: WriteControl): Promise<MergeResult> {
    return this.write(request.memory, () => prepareMerge(request, this.limits), control)
  }

  /**
   * Derive every id of a memory again and name what does not fit. With `repair` what is derived from the rows for speed is
   * made anew; rows and heads never are.
   */
  verify({ memory, repair }: VerifyRequest, control?: WriteControl): Promise<VerifyResult> {
    if (repair !== true)
      return this.read(
        { memory },
        {
          none: (): VerifyResult => ({ ok: true, objects: 0, problems: [], redacted: [] }),
          found: (record) => verify(this.engine, record),
        },
      )
    return this.repair(memory, control)
  }

  private async repair(name: string, control: WriteControl | undefined): Promise<VerifyResult> {
    checkMemoryName(name)
    await this.queue.submit(async (writer) => {
      const memory = await writer.memory(name)
      if (memory !== undefined) await rebuildIndex(writer, memory)
    }, control)
    const result = await this.verify({ memory: name })
    if (result.ok) this.damaged.delete(name)
    return result
  }

  /** The memories that hold at least one commit, by name. */
  async memories(request: MemoriesRequest = {}): Promise<{ memories: MemoryInfo[]; next?: string }> {
    const limit = request.limit ?? DEFAULT_PAGE
    // One more than asked for tells whether another page follows.
    const found = await this.engine.memories(request.prefix ?? '', request.after, limit + 1)
    const records = found.slice(0, limit)
    const memories: MemoryInfo[] = []
    for (const record of records) {
      const head = await headOf(this.engine, record)
      if (head !== undefined)
        memories.push({ name: record.name, branch: record.default_branch, commit: toHex(head.id) })
    }
    const last = records.at(-1)
    return found.length === records.length || last === undefined
      ? { memories }
      : { memories, next: last.name }
  }

  /** Figures of the whole store directory. */
  async stats(): Promise<Stats> {
    return { ...(await this.engine.counts()), schema_version: this.engine.schemaVersion }
  }

  /** Figures of one memory. */
  async memoryStats(memory: string): Promise<MemoryStats> {
    const { commit, branch, count, epoch } = await this.listing({ memory, max_items: 0 })
    const record = await this.engine.memory(memory)
    const commits = record === undefined ? 0 : (await this.engine.counts(record.id)).commits
    return { memory, branch, commit, commits, items: count, epoch }
  }

  /** How many memories' heads are kept at hand. */
  openMemories(): number {
    return this.heads.size
  }

  /** Bytes of the store's files; 0 where it has none. */
  storeBytes(): number {
    return this.engine.bytes()
  }

  /** See that the store can still be written to, without writing. Throws `store_io` saying what stands in the way. */
  checkWritable(): void {
    this.engine.checkWritable()
  }

  /** Refuse new writes, finish those that were taken, then let go of the files. */
  async close(): Promise<void> {
    await this.queue.close()
    await this.engine.close()
  }

  private changeBranches(
    name: string,
    check: () => void,
    control: WriteControl | undefined,
    work: (writer: EngineWriter, memory: MemoryRecord) => Promise<void>,
  ): Promise<BranchList> {
    const prepare = () => {
      checkMemoryName(name)
      check()
      return async ({ writer }: Transaction) => {
        const memory = await writer.memory(name)
        if (memory === undefined) throw unknownCommit(name, DEFAULT_BRANCH, 'nobody has written to it')
        await work(writer, memory)
        return listBranches(writer, (await writer.memory(name)) as MemoryRecord)
      }
    }
    return this.write(name, prepare, control)
  }

  private async write<T>(
    name: string,
    prepare: () => (transaction: Transaction) => Promise<T>,
    control: WriteControl | undefined,
  ): Promise<T> {
    const damage = this.damaged.get(name)
    if (damage !== undefined) throw damage
    const work = prepare()
    const submitted = this.queue.submit(
      (writer) => work({ writer, hold: (memory, branch) => this.holds.hold(writer, memory, branch) }),
      control,
    )
    return this.noticeDamage(name, submitted)
  }

  /** Read a memory; one that nobody has written is as an empty one, and reading it makes nothing. */
  private async read<T>(
    { memory: name, branch, at }: { memory: string; branch?: string | undefined; at?: At | undefined },
    answer: { none: (branch: string) => T; found: (memory: MemoryRecord) => Promise<T> },
  ): Promise<T> {
    checkMemoryName(name)
    if (branch !== undefined) checkText(branch, 'branch')
    const record = await this.engine.memory(name)
    if (record !== undefined) return this.noticeDamage(name, answer.found(record))
    if (branch !== undefined && branch !== DEFAULT_BRANCH) throw noSuchBranch(name, branch)
    if (typeof at === 'string' && at !== DEFAULT_BRANCH)
      throw unknownCommit(name, at, 'nobody has written to it')
    return answer.none(DEFAULT_BRANCH)
  }

  private async noticeDamage<T>(name: string, answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      if (error instanceof MnemError && error.kind === 'corrupt_store') this.damaged.set(name, error)
      throw error
    }
  }
}
