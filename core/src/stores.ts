import { checkBranchName, createBranch, deleteBranch, listBranches, switchBranch } from './branches.ts'
import type { Engine, EngineWriter, MemoryRecord } from './engine/engine.ts'
import { SqliteEngine } from './engine/sqlite.ts'
import { MnemError } from './errors.ts'
import { Holds } from './heads.ts'
import { Importer } from './import.ts'
import { checkMemoryName, checkText, noSuchItem } from './names.ts'
import { checkPurge, notePurged, originsOf, Places, tracesOf } from './purge.ts'
import { unknownCommit } from './refs.ts'
import { StoreReads } from './store-reads.ts'
import type {
  AddRequest,
  AddResult,
  BranchList,
  BranchRequest,
  ForgetRequest,
  ForgetResult,
  MergeRequest,
  MergeResult,
  PurgeRequest,
  PurgeResult,
  VerifyRequest,
  VerifyResult,
  WriteRequest,
} from './types.ts'
import { rebuildIndex } from './verify.ts'
import { type WriteControl, WriteQueue } from './write-queue.ts'
import {
  AUTHOR_BYTES,
  checkBounded,
  DEFAULT_AUTHOR,
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
export class Stores extends StoreReads {
  private readonly queue: WriteQueue
  private readonly limits: WriteLimits
  private readonly holds = new Holds(this.heads)

  /** `onStored` is told after each transaction how many writes it stored. */
  constructor(engine: Engine, options: OpenOptions = {}, onStored: (writes: number) => void = () => {}) {
    super(engine, options.listingBytes ?? 24 * MiB)
    this.queue = new WriteQueue(engine, (stored, writes) => {
      this.holds.release(stored)
      if (stored) onStored(writes)
    })
    this.limits = { itemBytes: options.itemBytes ?? 8 * MiB, itemsPerAdd: options.itemsPerAdd ?? 10_000 }
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
    return repair === true ? this.repair(memory, control) : this.look(memory)
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

  /**
   * Take the content of items out of every version for good, under every number that they have had, and out of every file of
   * the store; their ids, and the ids of states and commits, stay. Safe to ask for again: `busy` after the content is gone
   * from the memory says that another process keeps its last bytes from being erased.
   */
  async purge(request: PurgeRequest, control?: WriteControl): Promise<PurgeResult> {
    checkMemoryName(request.memory)
    checkPurge(request)
    const { author = DEFAULT_AUTHOR, reason } = request
    checkBounded(author, 'author', AUTHOR_BYTES)
    const none = () => noSuchItem(request.memory, request.ids[0] as string)
    const places = await this.queue.submit(async (writer) => {
      const memory = await writer.memory(request.memory)
      if (memory === undefined) throw none()
      return new Places(memory, await originsOf(writer, memory, request))
    }, control)
    // A whole history takes a while to look through: what comes meanwhile is looked at under the lock.
    await places.look(this.engine)
    const { traces, result } = await this.queue.submit(async (writer) => {
      const memory = await writer.memory(request.memory)
      if (memory?.id !== places.memory.id) throw none()
      await places.look(writer)
      const redactions = await places.redact(writer)
      const note = { author, time: Date.now(), reason }
      for (const { object, number } of redactions) await notePurged(writer, memory, object, number, note)
      const epoch = memory.epoch + (redactions.length > 0 ? 1 : 0)
      if (epoch !== memory.epoch) await writer.setEpoch(memory, epoch)
      const result = { purged: request.ids, epoch, elsewhere: await places.elsewhere(writer) }
      return { traces: redactions.length > 0 ? tracesOf(redactions) : undefined, result }
    }, control)
    await this.engine.erase(traces)
    return result
  }

  /** Begin to take an export in as a memory of this name; with `force` even if it brings back what was purged. */
  beginImport(name: string, options: { force?: boolean | undefined } = {}): Importer {
    return new Importer(this.engine, name, options.force === true)
  }

  /** Copy the whole store into another directory while it goes on; the copy opens as a store. Gives its bytes. */
  backup(dir: string): Promise<number> {
    return this.engine.backup(dir)
  }

  /** Delete a memory with all of its history. */
  deleteMemory(name: string, control?: WriteControl): Promise<void> {
    // Not by `write`: a damaged one can be deleted too.
    return this.queue.submit(async (writer) => {
      checkMemoryName(name)
      const memory = await writer.memory(name)
      if (memory === undefined)
        throw new MnemError('not_found', `There is no memory "${name}"; \`memories\` lists them.`)
      await writer.deleteMemory(memory.id)
      this.damaged.delete(name)
    }, control)
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
}
