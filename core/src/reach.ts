import { breathe } from './breathe.ts'
import type { EngineReader, Row } from './engine/engine.ts'
import { MAX_DEPTH_ON_LINE, mergeKey, readMergeValue } from './keys.ts'

type Place = Pick<Row, 'line' | 'depth'>

/**
 * A commit and all its ancestors, through merges too: how far each line is part of it. A commit has everything before it
 * on its line behind it, so of each line that is a beginning.
 */
export class Reach {
  readonly depths: ReadonlyMap<number, number>

  constructor(depths: ReadonlyMap<number, number>) {
    this.depths = depths
  }

  has({ line, depth }: Place): boolean {
    return depth <= (this.depths.get(line) ?? -1)
  }
}

/** What a commit reaches. Costs its lines and merges, not its commits. */
export async function reachOf(reader: EngineReader, row: Row): Promise<Reach> {
  const depths = new Map<number, number>()
  const open: Place[] = [row]
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const { line, depth } = place
    const known = depths.get(line)
    if (known !== undefined && depth <= known) continue
    depths.set(line, depth)
    if (known === undefined) {
      const [first] = await reader.line(row.memory, line, 0, depth, { limit: 1 })
      const [parent] = first?.parents ?? []
      if (parent !== undefined) open.push(...(await reader.rows(row.memory, [parent])))
    }
    const from = mergeKey(line, known === undefined ? 0 : known + 1)
    for (const { value } of await reader.entries(row.memory, from, mergeKey(line, depth + 1)))
      open.push(readMergeValue(value))
    await breathe()
  }
  return new Reach(depths)
}

/**
 * The best common ancestors of two commits: those from which no other common one descends. One, several after a
 * criss-cross, or none.
 */
export async function mergeBases(reader: EngineReader, a: Row, b: Row): Promise<Row[]> {
  const [ours, theirs] = [await reachOf(reader, a), await reachOf(reader, b)]
  const candidates: { row: Row; reach: Reach }[] = []
  for (const [line, depth] of ours.depths) {
    const common = Math.min(depth, theirs.depths.get(line) ?? -1)
    const [row] = await reader.line(a.memory, line, Math.max(common, 0), common)
    if (row !== undefined) candidates.push({ row, reach: await reachOf(reader, row) })
  }
  return candidates
    .filter(({ row }) => !candidates.some((other) => other.row.seq !== row.seq && other.reach.has(row)))
    .map(({ row }) => row)
    .sort((x, y) => x.seq - y.seq)
}

const CHUNK = 256

/** One line of a reach, read from its top down. */
class LineCursor {
  private readonly reader: EngineReader
  private readonly memory: number
  private readonly line: number
  private depth: number
  private rows: Row[] = []

  constructor(reader: EngineReader, memory: number, line: number, depth: number) {
    this.reader = reader
    this.memory = memory
    this.line = line
    this.depth = depth
  }

  /** The next row, which `take` takes. */
  async peek(): Promise<Row | undefined> {
    if (this.rows.length === 0 && this.depth >= 0) {
      const page = { limit: CHUNK, reverse: true }
      this.rows = (await this.reader.line(this.memory, this.line, 0, this.depth, page)).reverse()
      this.depth = (this.rows[0]?.depth ?? 0) - 1
    }
    return this.rows.at(-1)
  }

  take(): void {
    this.rows.pop()
  }

  /** Go down to the first row that was written before `seq`. */
  async skipTo(seq: number): Promise<void> {
    let [low, high] = [-1, Math.min(this.depth, MAX_DEPTH_ON_LINE)]
    // Lines that branch off begin at some depth: what lies below has no row, and counts as before.
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      const [row] = await this.reader.line(this.memory, this.line, middle, middle)
      if (row === undefined || row.seq < seq) low = middle
      else high = middle - 1
    }
    this.depth = low
  }
}

/** The rows of a reach, children before parents, newest first; only those written before `before`. */
export async function* descending(
  reader: EngineReader,
  memory: number,
  reach: Reach,
  before?: number,
): AsyncGenerator<Row> {
  const open: { cursor: LineCursor; top: Row }[] = []
  const put = async (cursor: LineCursor) => {
    const top = await cursor.peek()
    if (top === undefined) return
    // Sorted, the newest last: rows are numbered in the order of writing, so every parent comes after its children.
    const at = open.findIndex((other) => other.top.seq > top.seq)
    open.splice(at === -1 ? open.length : at, 0, { cursor, top })
  }
  for (const [line, depth] of reach.depths) {
    const cursor = new LineCursor(reader, memory, line, depth)
    if (before !== undefined) await cursor.skipTo(before)
    await put(cursor)
  }
  for (let next = open.pop(), count = 1; next !== undefined; next = open.pop(), count++) {
    yield next.top
    next.cursor.take()
    await put(next.cursor)
    if (count % CHUNK === 0) await breathe()
  }
}

/** One line, read from its beginning up. */
class RisingCursor {
  private readonly reader: EngineReader
  private readonly memory: number
  private readonly line: number
  private depth: number
  private rows: Row[] = []
  private isOver = false

  constructor(reader: EngineReader, memory: number, line: number, depth: number) {
    this.reader = reader
    this.memory = memory
    this.line = line
    this.depth = depth
  }

  async peek(): Promise<Row | undefined> {
    if (this.rows.length === 0 && !this.isOver) {
      const page = { limit: CHUNK }
      const rows = await this.reader.line(this.memory, this.line, this.depth, MAX_DEPTH_ON_LINE, page)
      this.isOver = rows.length < CHUNK
      this.depth = (rows.at(-1)?.depth ?? this.depth) + 1
      this.rows = rows.reverse()
    }
    return this.rows.at(-1)
  }

  take(): void {
    this.rows.pop()
  }
}

/** Every row of a memory that was written behind `after` and not behind `upTo`, parents before children. */
export async function* ascending(
  reader: EngineReader,
  memory: number,
  after: number,
  upTo: number,
): AsyncGenerator<Row> {
  const open: { cursor: RisingCursor; next: Row }[] = []
  const put = async (cursor: RisingCursor) => {
    const next = await cursor.peek()
    if (next === undefined || next.seq > upTo) return
    // Sorted, the oldest last.
    const at = open.findIndex((other) => other.next.seq < next.seq)
    open.splice(at === -1 ? open.length : at, 0, { cursor, next })
  }
  const lines = await reader.lines(memory)
  for (let line = 1; line <= lines; line++)
    await put(new RisingCursor(reader, memory, line, await firstAfter(reader, memory, line, after)))
  for (let first = open.pop(); first !== undefined; first = open.pop()) {
    yield first.next
    first.cursor.take()
    await put(first.cursor)
  }
}

/** The depth of the first row of a line that was written behind `after`. */
async function firstAfter(
  reader: EngineReader,
  memory: number,
  line: number,
  after: number,
): Promise<number> {
  const [first] = await reader.line(memory, line, 0, MAX_DEPTH_ON_LINE, { limit: 1 })
  const [top] = await reader.line(memory, line, 0, MAX_DEPTH_ON_LINE, { limit: 1, reverse: true })
  if (first === undefined || top === undefined) return 0
  let [low, high] = [first.depth, top.depth + 1]
  while (low < high) {
    const middle = (low + high) >> 1
    const [row] = await reader.line(memory, line, middle, middle)
    if (row !== undefined && row.seq > after) high = middle
    else low = middle + 1
  }
  return low
}
