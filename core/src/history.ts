import { breathe } from './breathe.ts'
import { backwards, runsThrough, stretches } from './chain.ts'
import { ChangeLookup, type SettingChange } from './change-lookup.ts'
import type { EngineReader, MemoryRecord, Row } from './engine/engine.ts'
import { invalidParams } from './errors.ts'
import { toHex } from './id.ts'
import { renderNode } from './item.ts'
import { events, type ItemEvent, lastEvent } from './item-index.ts'
import { itemNumber, noSuchItem } from './names.ts'
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
  const start = await firstOf(reader, memory, request)
  const commits: Commit[] = []
  if (start === undefined) return { commits }
  // Each commit is shown once its parent, the next row, is known: one read serves both.
  let child: Row | undefined
  for await (const row of backwards(reader, start)) {
    if (child !== undefined) add(commits, child, [row], request.since)
    if (commits.length === limit) return { commits, next: (commits.at(-1) as Commit).id }
    child = row
  }
  if (child !== undefined) add(commits, child, [], request.since)
  return { commits }
}

function add(commits: Commit[], row: Row, parents: readonly Row[], since: number | undefined): void {
  const commit = commitOf(row, parents)
  if (since === undefined || commit.time >= since) commits.push(commit)
}

/** Where a log begins: at `at` or the head, or behind the commit that the caller saw last. */
async function firstOf(
  reader: EngineReader,
  memory: MemoryRecord,
  request: LogRequest,
): Promise<Row | undefined> {
  const top = await resolve(reader, memory, request.branch, request.at)
  if (request.after === undefined || top === undefined) return top
  const last = (await resolve(reader, memory, request.branch, request.after)) as Row
  if (!runsThrough(await stretches(reader, top), last)) {
    throw unknownCommit(
      memory.name,
      request.after,
      '`after` is not part of this log; give the `next` of the answer before',
    )
  }
  const parent = last.parents[0]
  return parent === undefined ? undefined : (await reader.rows(memory.id, [parent]))[0]
}

/** The commit that gave an item the value it has at the head or `at`. */
export async function why(reader: EngineReader, memory: MemoryRecord, request: WhyRequest): Promise<Why> {
  const number = itemNumber(memory.prefix, request.id)
  const row = await resolve(reader, memory, request.branch, request.at)
  if (number === undefined || row === undefined) throw noSuchItem(memory.name, request.id)
  const event = await lastEvent(reader, memory.id, number, await stretches(reader, row))
  if (event?.set !== true) throw noSuchItem(memory.name, request.id)
  const [writer] = (await reader.rows(memory.id, [event.seq])) as [Row]
  const [change] = await new ChangeLookup(reader, memory.id).find([{ key: number, seq: event.seq }])
  const item = renderNode(memory.prefix, number, change as SettingChange)
  return { commit: await showCommit(reader, writer), item }
}

/** Every commit on the branch's chain of first parents that set an item or removed it, newest first. */
export async function history(
  reader: EngineReader,
  memory: MemoryRecord,
  request: HistoryRequest,
): Promise<History> {
  const number = itemNumber(memory.prefix, request.id)
  const head = await headOf(reader, memory, request.branch)
  if (number === undefined || head === undefined) throw noSuchItem(memory.name, request.id)
  const found: ItemEvent[] = []
  for await (const event of events(reader, memory.id, number, await stretches(reader, head)))
    found.push(event)
  if (found.length === 0) throw noSuchItem(memory.name, request.id)
  const lookup = new ChangeLookup(reader, memory.id)
  const entries: HistoryEntry[] = []
  for (const [index, { seq, set }] of found.entries()) {
    const wasSet = found[index + 1]?.set === true
    const [row] = (await reader.rows(memory.id, [seq])) as [Row]
    const change = set ? (await lookup.find([{ key: number, seq }]))[0] : undefined
    const kind = change === undefined ? 'removed' : wasSet ? 'changed' : 'added'
    const item = change === undefined ? null : renderNode(memory.prefix, number, change)
    entries.push({ commit: await showCommit(reader, row), kind, item })
    await breathe()
  }
  return { entries }
}
