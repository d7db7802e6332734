import { breathe } from './breathe.ts'
import { forwards, runsThrough, stretches } from './chain.ts'
import type { EngineReader, MemoryRecord, Row } from './engine/engine.ts'
import { invalidParams, MnemError } from './errors.ts'
import { showCommit } from './history.ts'
import { contentContains } from './item.ts'
import { itemNumber, noSuchItem } from './names.ts'
import { type Change, decodeRecord } from './record.ts'
import { resolve, unknownCommit } from './refs.ts'
import type { Bisect, BisectCondition, BisectRequest } from './types.ts'

/** The stretch of first parents that is searched: the commits behind `good` up to `bad`, oldest first. */
interface Range {
  /** Undefined: before the first commit. */
  good: Row | undefined
  bad: Row
  /** How many commits there are in it. */
  count: number
}

/**
 * Find the first commit on the first-parent chain where a condition holds, taking it that it holds from there on. The
 * chain is read once, forwards; the steps are those that a search asking for one state at a time would take.
 */
export async function bisect(
  reader: EngineReader,
  memory: MemoryRecord,
  request: BisectRequest,
): Promise<Bisect> {
  const range = await rangeOf(reader, memory, request)
  if (request.probe !== undefined) return probe(reader, range, request.probe)
  if (request.where === undefined)
    throw invalidParams('where', 'is missing; give it, or `probe` to ask for one commit')
  const holds = await evaluate(reader, range, tracker(memory, request.where))
  if (holds[0] === true)
    throw new MnemError('invalid_ref', 'It holds at `good` already; give an earlier one, or leave it out.')
  if (holds[range.count] !== true)
    throw new MnemError('invalid_ref', 'It does not hold at `bad`; give a commit where it does.')
  let [low, high, steps] = [0, range.count, 0]
  while (low < high) {
    const middle = (low + high) >> 1
    steps++
    if (holds[middle + 1] === true) high = middle
    else low = middle + 1
  }
  return { commit: await showCommit(reader, await rowAt(reader, range, low)), steps }
}

/** One commit of the range, for a caller who looks at states himself. */
async function probe(reader: EngineReader, range: Range, index: number): Promise<Bisect> {
  if (!Number.isSafeInteger(index) || index < 0 || index >= range.count)
    throw invalidParams('probe', `is none of the ${range.count} commits; they count from 0`)
  return { commit: await showCommit(reader, await rowAt(reader, range, index)), count: range.count }
}

async function rangeOf(
  reader: EngineReader,
  memory: MemoryRecord,
  { good: goodAt, bad: badAt, branch }: BisectRequest,
): Promise<Range> {
  const bad = await resolve(reader, memory, branch, badAt)
  if (bad === undefined)
    throw unknownCommit(memory.name, String(badAt ?? memory.default_branch), 'there is no commit there yet')
  const good = goodAt === undefined ? undefined : await resolve(reader, memory, branch, goodAt)
  if (good !== undefined && !runsThrough(await stretches(reader, bad), good))
    throw new MnemError(
      'invalid_ref',
      '`good` is not behind `bad` on its chain of first parents; give an ancestor of it.',
    )
  const count = bad.depth - (good?.depth ?? -1)
  if (count === 0)
    throw new MnemError('invalid_ref', '`good` and `bad` are one commit; give an earlier `good`.')
  return { good, bad, count }
}

async function rowAt(reader: EngineReader, { good, bad }: Range, index: number): Promise<Row> {
  const depth = (good?.depth ?? -1) + 1 + index
  const line = (await stretches(reader, bad)).find(({ to }, position, chain) => {
    const below = chain[position + 1]
    return depth <= to && (below === undefined || depth > below.to)
  })?.line as number
  const [row] = await reader.line(bad.memory, line, depth, depth)
  return row as Row
}

/** Follows a condition over the commits of a chain. */
interface Tracker {
  apply(change: Change): void
  readonly holds: boolean
}

/** Whether it holds at `good` (first) and at each commit of the range. */
async function evaluate(
  reader: EngineReader,
  { good, bad, count }: Range,
  tracked: Tracker,
): Promise<boolean[]> {
  const first = good?.depth ?? -1
  const holds: boolean[] = first === -1 ? [tracked.holds] : []
  let read = 0
  for await (const row of forwards(reader, bad)) {
    for (const change of decodeRecord(row.body).changes) tracked.apply(change)
    if (row.depth >= first) holds.push(tracked.holds)
    if (++read % 256 === 0) await breathe()
  }
  return holds.slice(0, count + 1)
}

function tracker(memory: MemoryRecord, where: BisectCondition): Tracker {
  if ('contains' in where) {
    const { contains } = where
    return new Matching((change) => change.kind === 'item' && contentContains(change.fields, contains), 1)
  }
  if ('item' in where) {
    const number = itemNumber(memory.prefix, where.item)
    if (number === undefined) throw noSuchItem(memory.name, where.item)
    return new Matching((change) => change.number === number, 1)
  }
  return new Matching(() => true, where.count_at_least)
}

type Setting = Extract<Change, { kind: 'item' | 'redacted' }>

/** Counts the live items that match. */
class Matching implements Tracker {
  private readonly matches: (change: Setting) => boolean
  private readonly least: number
  private readonly live = new Set<number>()

  constructor(matches: (change: Setting) => boolean, least: number) {
    this.matches = matches
    this.least = least
  }

  get holds(): boolean {
    return this.live.size >= this.least
  }

  apply(change: Change): void {
    if (change.kind === 'item' || change.kind === 'redacted') {
      if (this.matches(change)) this.live.add(change.number)
      else this.live.delete(change.number)
    } else if (change.kind === 'remove') {
      for (let i = 0; i < change.count; i++) this.live.delete(change.from + i)
    }
  }
}
