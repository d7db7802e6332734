import { breathe } from './breathe.ts'
import { backwards, runsThrough, stretches } from './chain.ts'
import { ChangeLookup } from './change-lookup.ts'
import type { EngineReader, MemoryRecord, Row } from './engine/engine.ts'
import { invalidParams } from './errors.ts'
import { toHex } from './id.ts'
import { originOf, writerOf } from './identity.ts'
import { renderNode } from './item.ts'
import { events, type ItemEvent } from './item-index.ts'
import { itemNumber, noSuchItem } from './names.ts'
import { descending, reachOf } from './reach.ts'
import { decodeRecord } from './record.ts'
import { headOf, resolve, unknownCommit } from './refs.ts'
import type {
  Commit,
  History,
  HistoryEntry,
  HistoryRequest,
  Log,
  LogRequest,
  Why,
  WhyRequest,
} from './types.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 10_000

/** A row as the commit that callers see. */
export async function showCommit(reader: EngineReader, row: Row): Promise<Commit> {
  return commitOf(row, row.parents.length === 0 ? [] : await reader.rows(row.memory, row.parents))
}

function commitOf(row: Row, parents: readonly Row[]): Commit {
  const { state, message, author, time } = decodeRecord(row.body)
  return {
    id: toHex(row.id),
    parents: parents.map(({ id }) => toHex(id)),
    state: toHex(state),
    message,
    author,
    time,
  }
}

/** The commits behind the head or `at`, children before parents. */
export async function log(reader: EngineReader, memory: MemoryRecord, request: LogRequest): Promise<Log> {
  const limit = request.limit ?? DEFAULT_LIMIT
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw invalidParams('limit', `is not 1 to ${MAX_LIMIT}`)
  const top = await resolve(reader, memory, request.branch, request.at)
  if (top === undefined) return { commits: [] }
  const rows: Row[] = []
  for await (const row of await walk(reader, memory, request, top)) {
    if (request.since !== undefined && decodeRecord(row.body).time < request.since) continue
    if (rows.length === limit) {
      const last = rows.at(-1) as Row
      return { commits: await showCommits(reader, rows), next: toHex(last.id) }
    }
    rows.push(row)
  }
  return { commits: await showCommits(reader, rows) }
}

/** The commits of a log, newest first, behind the one that the caller saw last. */
async function walk(
  reader: EngineReader,
  memory: MemoryRecord,
  { branch, after, first_parent }: LogRequest,
  top: Row,
): Promise<AsyncGenerator<Row>> {
  const last = after === undefined ? undefined : ((await resolve(reader, memory, branch, after)) as Row)
  const isFirstParent = first_parent === true
  const chain = isFirstParent ? await stretches(reader, top) : []
  const reach = isFirstParent ? undefined : await reachOf(reader, top)
  if (last !== undefined && !(reach === undefined ? runsThrough(chain, last) : reach.has(last)))
    throw unknownCommit(
      memory.name,
      after as string,
      '`after` is not part of this log; give the `next` of the answer before',
    )
  if (reach !== undefined) return descending(reader, memory.id, reach, last?.seq)
  const [parent] = last?.parents ?? []
  if (last === undefined) return backwards(reader, top)
  return parent === undefined ? none() : backwards(reader, (await reader.rows(memory.id, [parent]))[0] as Row)
}

async function* none(): AsyncGenerator<Row> {}

/** Rows as commits; parents that are not among them are read together. */
async function showCommits(reader: EngineReader, rows: readonly Row[]): Promise<Commit[]> {
  const known = new Map(rows.map((row) => [row.seq, row]))
  const missing = new Set(rows.flatMap(({ parents }) => parents).filter((seq) => !known.has(seq)))
  const [first] = rows
  if (first !== undefined && missing.size > 0)
    for (const row of await reader.rows(first.memory, Array.from(missing))) known.set(row.seq, row)
  return rows.map((row) =>
    commitOf(
      row,
      row.parents.map((seq) => known.get(seq) as Row),
    ),
  )
}

/** The commit that gave an item the value it has at the head or `at`. */
export async function why(reader: EngineReader, memory: MemoryRecord, request: WhyRequest): Promise<Why> {
  const number = itemNumber(memory.prefix, request.id)
  const row = await resolve(reader, memory, request.branch, request.at)
  if (number === undefined || row === undefined) throw noSuchItem(memory.name, request.id)
  const written = await writerOf(reader, memory.id, number, await stretches(reader, row))
  if (written === undefined) throw noSuchItem(memory.name, request.id)
  // Under the number that was asked for, which it may have since a merge only.
  const item = renderNode(memory.prefix, number, written.change)
  return { commit: await showCommit(reader, written.row), item }
}

/** Every commit that set an item or removed it, newest first; what a merge brought in, followed to where it came from. */
export async function history(
  reader: EngineReader,
  memory: MemoryRecord,
  request: HistoryRequest,
): Promise<History> {
  const number = itemNumber(memory.prefix, request.id)
  const head = await headOf(reader, memory, request.branch)
  if (number === undefined || head === undefined) throw noSuchItem(memory.name, request.id)
  const entries = await eventsOf(reader, memory, head, number, 'all')
  if (entries.length === 0) throw noSuchItem(memory.name, request.id)
  entries.sort((a, b) => b.seq - a.seq)
  return { entries: entries.map(({ entry }) => entry) }
}

/** The events of a number on a chain; `one` for those of the item alone that is live at its end. */
async function eventsOf(
  reader: EngineReader,
  memory: MemoryRecord,
  head: Row,
  number: number,
  which: 'all' | 'one',
): Promise<{ seq: number; entry: HistoryEntry }[]> {
  const found: ItemEvent[] = []
  for await (const event of events(reader, memory.id, number, await stretches(reader, head)))
    found.push(event)
  const lookup = new ChangeLookup(reader, memory.id)
  const entries: { seq: number; entry: HistoryEntry }[] = []
  for (const [index, { seq, set }] of found.entries()) {
    const wasSet = found[index + 1]?.set === true
    const [row] = (await reader.rows(memory.id, [seq])) as [Row]
    const change = set ? (await lookup.find([{ key: number, seq }]))[0] : undefined
    const kind = change === undefined ? 'removed' : wasSet ? 'changed' : 'added'
    const item = change === undefined ? null : renderNode(memory.prefix, number, change)
    entries.push({ seq, entry: { commit: await showCommit(reader, row), kind, item } })
    const theirs = change && originOf(change)?.theirs
    const second = row.parents[1]
    if (theirs !== undefined && second !== undefined) {
      const [parent] = (await reader.rows(memory.id, [second])) as [Row]
      entries.push(...(await eventsOf(reader, memory, parent, theirs, 'one')))
    }
    if (which === 'one' && kind === 'added') break
    await breathe()
  }
  return entries
}
