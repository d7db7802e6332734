/**
 * Where stores keep their bytes. An engine knows rows (opaque bodies, ids, place), refs and ordered index keys, and
 * takes many commits in one transaction; it knows nothing of what a body means. Every engine passes the suite in
 * core/test/engine-contract.ts.
 *
 * Rows never change once written and are found from refs, so a reader needs no snapshot: it reads a ref once and
 * follows rows from there.
 */

/** One memory of the store directory. `id` is never given twice, not even after the memory is deleted. */
export interface MemoryRecord {
  id: number
  name: string
  /** NAME in item ids; fixed when the memory is created. */
  prefix: string
  default_branch: string
  /** Rises with each purge. */
  epoch: number
}

/**
 * One commit. `line` is a chain of first parents, `depth` how many first parents lie behind (0 for a root), together
 * its place; a commit on a commit that has no follower on its line yet stays on that line.
 */
export interface Row {
  /** Position in the order of writing; every parent's is smaller. */
  seq: number
  memory: number
  line: number
  depth: number
  /** Positions of the parents' rows, first parent first; two in a merge. */
  parents: readonly number[]
  /** The commit's id, 32 bytes. */
  id: Uint8Array
  body: Uint8Array
}

/** An index entry: keys are ordered bytewise. */
export interface Entry {
  key: Uint8Array
  value: Uint8Array
}

export interface Page {
  /** At most so many, default all. */
  limit?: number
  /** From the end backwards. */
  reverse?: boolean
}

export interface EngineReader {
  /** The memory of this name. */
  memory(name: string): Promise<MemoryRecord | undefined>
  /** Memories whose name starts with `prefix`, behind `after`, in the order of their names' UTF-8 bytes. */
  memories(prefix: string, after: string | undefined, limit: number): Promise<MemoryRecord[]>
  /** The position that a branch points at. */
  ref(memory: number, branch: string): Promise<number | undefined>
  /** All branches with the positions that they point at, in the order of their names' UTF-8 bytes. */
  refs(memory: number): Promise<{ branch: string; seq: number }[]>
  /** The rows at these positions, in the order asked; a missing or damaged one is `corrupt_store`. */
  rows(memory: number, seqs: readonly number[]): Promise<Row[]>
  /** The rows of a line from depth `from` to depth `to`, both included. */
  line(memory: number, line: number, from: number, to: number, page?: Page): Promise<Row[]>
  /** The highest number of a line that has rows; 0 where there are none. */
  lines(memory: number): Promise<number>
  /** Index entries with `from` <= key < `to`. */
  entries(memory: number, from: Uint8Array, to: Uint8Array, page?: Page): Promise<Entry[]>
  /** How many memories and commits there are, and bytes of files (0 where there are none). */
  counts(memory?: number): Promise<{ memories: number; commits: number; bytes: number }>
}

export interface EngineWriter extends EngineReader {
  /** Make a memory; the name must be free. */
  createMemory(name: string, prefix: string, default_branch: string): Promise<MemoryRecord>
  /** The position that the next row gets: one behind all others. */
  nextSeq(): Promise<number>
  /** Write a row. Its position and its place must be free. */
  append(row: Row): Promise<void>
  /** Write another body in place of a row's: a purge alone does that. The row must be there. */
  rewrite(row: Row): Promise<void>
  /** Set a memory's epoch. */
  setEpoch(memory: MemoryRecord, epoch: number): Promise<void>
  /** Move a branch from `expected` (undefined: it does not exist) to `seq`; false, and nothing moved, if it points elsewhere. */
  moveRef(memory: number, branch: string, expected: number | undefined, seq: number): Promise<boolean>
  /** Remove a branch; false where there is none. */
  deleteRef(memory: number, branch: string): Promise<boolean>
  /** Make another branch the memory's default. */
  setDefaultBranch(memory: MemoryRecord, branch: string): Promise<void>
  /** Give a memory another name, which must be free. */
  renameMemory(memory: MemoryRecord, name: string): Promise<void>
  /** Remove a memory with its rows, branches and index entries. */
  deleteMemory(memory: number): Promise<void>
  /** Remove the index entries with `from` <= key < `to`. */
  deleteEntries(memory: number, from: Uint8Array, to: Uint8Array): Promise<void>
  /** Set an index entry. */
  putEntry(memory: number, key: Uint8Array, value: Uint8Array): Promise<void>
  /** A line's number that no row of this memory has. */
  newLine(memory: number): Promise<number>
}

export interface Engine extends EngineReader {
  /**
   * Run `work` as one transaction under the store directory's write lock, and resolve when it is on disk. If `work`
   * throws, or the disk refuses, nothing of it is there. Waiting for another process's lock leaves the event loop
   * free; past the engine's bound it is `busy`.
   */
  transact<T>(work: (writer: EngineWriter) => Promise<T>): Promise<T>
  /** Version of the layout on disk. */
  readonly schemaVersion: number
  /** Bytes of the files; 0 where there are none. */
  bytes(): number
  /** See that the store can still be written to, without writing. Throws `store_io` saying what stands in the way. */
  checkWritable(): void
  /**
   * Copy the whole store into another directory, made where it is missing, while it goes on being read and written: what
   * is copied is one moment's store. Gives its bytes. Throws `conflict` where there is a store already, `store_io`.
   */
  backup(dir: string): Promise<number>
  /**
   * See that nothing of what was overwritten or deleted is left in any file of the store, free space within it included.
   * `traces` are pieces of it to look for; without them everything is written anew. Throws `busy` where another process still reads what was there before.
   */
  erase(traces?: readonly Uint8Array[]): Promise<void>
  /** End running work and let go of the files. */
  close(): Promise<void>
}
