import { CHUNK_BYTES, CV_WORDS, chunkValue, finish, parentValue } from './blake3.ts'

/** The chaining values of the complete, aligned subtrees of each size: level 0 are chunks, level 1 pairs, and so on. */
class Level {
  private values = new Uint32Array(16 * CV_WORDS)
  count = 0

  get words(): Uint32Array {
    return this.values
  }

  /** Room for one more; gives where it stands in `words`. */
  push(): number {
    const at = this.count++ * CV_WORDS
    if (at === this.values.length) {
      const grown = new Uint32Array(this.values.length * 2)
      grown.set(this.values)
      this.values = grown
    }
    return at
  }
}

/**
 * BLAKE3 over bytes of which a part is replaced at a time: the first chunk, and everything from some chunk on. All chunks
 * but the last have their values kept, and so have the subtrees above them, so that a change costs its own chunks and
 * the way up: 64 bytes of memory for each 1,024 hashed.
 */
class ChunkTree {
  private readonly levels: Level[] = [new Level()]
  private readonly stack = new Uint32Array(64 * CV_WORDS)

  /** Chunks whose values are kept: all but the last at the time. */
  get complete(): number {
    return (this.levels[0] as Level).count
  }

  /** Drop the values of the chunks from `count` on. */
  truncate(count: number): void {
    for (const [height, level] of this.levels.entries())
      level.count = Math.min(level.count, Math.floor(count / 2 ** height))
  }

  /** Take new bytes for the first chunk. */
  replaceFirst(bytes: Uint8Array): void {
    const [leaves] = this.levels as [Level]
    chunkValue(bytes, 0, CHUNK_BYTES, 0, leaves.words, 0)
    for (let height = 1; (this.levels[height]?.count ?? 0) > 0; height++) this.combine(height, 0)
  }

  /** Take the next chunk, which is complete and not the last. */
  append(bytes: Uint8Array, start: number): void {
    const [leaves] = this.levels as [Level]
    const index = leaves.count
    const at = leaves.push()
    chunkValue(bytes, start, CHUNK_BYTES, index, leaves.words, at)
    for (let height = 1, pair = index; pair % 2 === 1; height++) {
      pair = (pair - 1) / 2
      const level = this.levels[height] ?? new Level()
      this.levels[height] = level
      level.push()
      this.combine(height, pair)
    }
  }

  /** The hash, given the bytes of the last chunk. */
  root(last: Uint8Array): Buffer {
    const chunks = this.complete
    let depth = 0
    // The complete subtrees before the last chunk are the ones in the binary form of their number, largest first.
    for (let height = this.levels.length - 1, done = 0; height >= 0; height--) {
      if (Math.floor(chunks / 2 ** height) % 2 === 0) continue
      const at = (done / 2 ** height) * CV_WORDS
      this.stack.set((this.levels[height] as Level).words.subarray(at, at + CV_WORDS), depth++ * CV_WORDS)
      done += 2 ** height
    }
    return finish(this.stack, depth, last, chunks)
  }

  private combine(height: number, index: number): void {
    const below = (this.levels[height - 1] as Level).words
    const left = index * 2 * CV_WORDS
    parentValue(below, left, below, left + CV_WORDS, (this.levels[height] as Level).words, index * CV_WORDS)
  }
}

/** What the state's bytes are made of behind their head: entries of one size, by position. */
export interface Entries {
  count: number
  /** Bytes of one entry. */
  size: number
  /** Write the entries `from` to `to` (excluded), one behind the other. */
  write(from: number, to: number): Buffer
}

/**
 * The hash of a state's bytes: a head that may change each time, then entries of one size. Costs the entries that changed
 * and those behind them, and a few compressions more for each doubling of the state.
 */
export class StateHash {
  private readonly tree = new ChunkTree()
  private headBytes = 0
  private hashed = 0

  /** Hash again. Entries before `changedFrom` are as they were at the last call. */
  update(head: Buffer, entries: Entries, changedFrom: number): Buffer {
    // A head of another length shifts every byte behind it.
    const kept = head.length === this.headBytes ? Math.min(changedFrom, this.hashed) : 0
    const length = head.length + entries.count * entries.size
    const lastChunk = Math.max(0, Math.ceil(length / CHUNK_BYTES) - 1)
    const firstChanged = Math.floor((head.length + kept * entries.size) / CHUNK_BYTES)
    const from = Math.min(firstChanged, lastChunk, this.tree.complete)
    this.headBytes = head.length
    this.hashed = entries.count
    this.tree.truncate(from)
    if (from > 0) this.tree.replaceFirst(bytesFrom(head, entries, 0, CHUNK_BYTES))
    const bytes = bytesFrom(head, entries, from * CHUNK_BYTES, length)
    let at = 0
    for (let chunk = from; chunk < lastChunk; chunk++, at += CHUNK_BYTES) this.tree.append(bytes, at)
    return this.tree.root(bytes.subarray(at))
  }
}

/** The state's bytes from `start` to `end`. */
function bytesFrom(head: Buffer, entries: Entries, start: number, end: number): Buffer {
  const first = Math.max(0, Math.floor((start - head.length) / entries.size))
  const behind = Math.min(entries.count, Math.ceil((end - head.length) / entries.size))
  const written = entries.write(first, behind)
  if (start >= head.length) {
    const skip = start - head.length - first * entries.size
    return written.subarray(skip, skip + end - start)
  }
  return Buffer.concat([head.subarray(start), written]).subarray(0, end - start)
}
