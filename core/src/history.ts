import { backwards, runsThrough, stretches } from './chain.ts'
import { ChangeLookup } from './change-lookup.ts'
import type { EngineReader, MemoryRecord, Row } from './engine/engine.ts'
import { invalidParams } from './errors.ts'
import { toHex } from './id.ts'
import { after, itemKey, MAX_DEPTH_ON_LINE, readItemValue } from './keys.ts'
import { render } from './listing.ts'
import { itemNumber, noSuchItem } from './names.ts'
import { decodeRecord } from './record.ts'
import { resolve, unknownCommit } from './refs.ts'
import type { Commit, Log, LogRequest, Why, WhyRequest } from './types.ts'

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
  for (const { line, to } of await stretches(reader, row)) {
    const to_ = after(itemKey(number, line, Math.min(to, MAX_DEPTH_ON_LINE)))
    const [entry] = await reader.entries(memory.id, itemKey(number, line, 0), to_, {
      limit: 1,
      reverse: true,
    })
    if (entry === undefined) continue
    const { seq, set } = readItemValue(entry.value)
    if (!set) break
    const [writer] = (await reader.rows(memory.id, [seq])) as [Row]
    const [item] = await render(new ChangeLookup(reader, memory.id), memory.prefix, [{ number, seq }])
    if (item === undefined) break
    return { commit: await showCommit(reader, writer), item }
  }
  throw noSuchItem(memory.name, request.id)
}
