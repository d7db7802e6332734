import { bisect } from './bisect.ts'
import { listBranches } from './branches.ts'
import { compare } from './compare.ts'
import type { Engine, MemoryRecord } from './engine/engine.ts'
import { MnemError } from './errors.ts'
import { exportPart } from './export.ts'
import { Heads } from './heads.ts'
import { history, log, showCommit, why } from './history.ts'
import { toHex } from './id.ts'
import { FIRST_NAME } from './import.ts'
import { list } from './listing.ts'
import { checkMemoryName, checkText, noSuchItem } from './names.ts'
import { headOf, noSuchBranch, resolve, unknownCommit } from './refs.ts'
import type {
  At,
  Bisect,
  BisectRequest,
  BranchList,
  ChangedRequest,
  Changes,
  Commit,
  DiffRequest,
  ExportPart,
  ExportRequest,
  History,
  HistoryRequest,
  Listing,
  ListingRequest,
  Log,
  LogRequest,
  MemoriesRequest,
  MemoryInfo,
  MemoryStats,
  Stats,
  VerifyResult,
  Why,
  WhyRequest,
} from './types.ts'
import { verify } from './verify.ts'
import { DEFAULT_BRANCH } from './writes.ts'

const DEFAULT_PAGE = 1000

/**
 * What is read of the memories of one store directory: every method rejects with a `MnemError` that says what to do. A
 * read sees every write that was resolved before it.
 */
export class StoreReads {
  protected readonly engine: Engine
  protected readonly heads = new Heads()
  private readonly listingBytes: number
  /** Memories in which damage was seen: they are read as far as they can be, and not written to again. */
  protected readonly damaged = new Map<string, MnemError>()

  constructor(engine: Engine, listingBytes: number) {
    this.engine = engine
    this.listingBytes = listingBytes
  }

  /** The items at the head, or at `at`: what `query`, `update_context` and `show` answer from. */
  listing(request: ListingRequest): Promise<Listing> {
    return this.read(request, {
      none: (branch): Listing => {
        const omitted =
          request.max_items !== undefined || request.max_bytes !== undefined ? { omitted: 0 } : {}
        return { commit: null, epoch: 0, branch, count: 0, mode: 'full', items: [], ...omitted }
      },
      found: async (memory) => {
        for (let record: MemoryRecord | undefined = memory; record !== undefined; ) {
          const listing = await list(this.engine, this.heads, record, request, this.listingBytes)
          if (listing !== undefined) return listing
          record = await this.engine.memory(memory.name)
        }
        throw unknownCommit(memory.name, String(request.at ?? DEFAULT_BRANCH), 'it was deleted meanwhile')
      },
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

  /** A part of a memory's whole history as text; together the parts are what it was when the first was asked for. */
  exportPart(request: ExportRequest): Promise<ExportPart> {
    return this.read(
      { memory: request.memory },
      {
        none: () => {
          throw new MnemError('not_found', `There is no memory "${request.memory}"; \`memories\` lists them.`)
        },
        found: (memory) => exportPart(this.engine, memory, request.after),
      },
    )
  }

  /** Derive every id of a memory again, from the rows alone, and name what does not fit. */
  protected look(memory: string): Promise<VerifyResult> {
    return this.read(
      { memory },
      {
        none: (): VerifyResult => ({ ok: true, objects: 0, problems: [], redacted: [], purged: [] }),
        found: (record) => verify(this.engine, record),
      },
    )
  }

  /** The memories that hold at least one commit, by name. */
  async memories(request: MemoriesRequest = {}): Promise<{ memories: MemoryInfo[]; next?: string }> {
    const limit = request.limit ?? DEFAULT_PAGE
    // One more than asked for tells whether another page follows.
    const found = await this.engine.memories(request.prefix ?? '', request.after ?? FIRST_NAME, limit + 1)
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

  protected async noticeDamage<T>(name: string, answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      if (error instanceof MnemError && error.kind === 'corrupt_store') this.damaged.set(name, error)
      throw error
    }
  }
}
