import { ChangeLookup } from './change-lookup.ts'
import { decode, encode } from './codec.ts'
import type { EngineWriter, Entry, MemoryRecord, Row } from './engine/engine.ts'
import { MnemError } from './errors.ts'
import type { HeldHead } from './heads.ts'
import { objectId, toHex } from './id.ts'
import {
  after,
  commitKey,
  commitKeySeq,
  commitRange,
  itemKey,
  itemValue,
  mergeKey,
  mergeValue,
  requestKey,
} from './keys.ts'
import { itemId } from './names.ts'
import { encodeCommit, nodeObjectId } from './object.ts'
import { type Change, decodeRecord, encodeRecord } from './record.ts'
import { State } from './state.ts'

/** What a commit says of itself besides its changes. */
export interface CommitText {
  author: string
  message: string
  /** Unix ms. */
  time: number
  /** Whether the caller set the time: it is kept then, whatever comes of it. */
  hasOwnTime: boolean
  request?: { key: string; digest: Uint8Array } | undefined
}

/** Where a commit goes: a branch of a memory, held for this transaction. */
export interface Target {
  memory: MemoryRecord
  branch: string
  head: HeldHead
}

/**
 * Make a commit of `changes` on the head that is held, and give its row. The head is moved on to it. A merge has a second
 * parent; its changes are against the first.
 */
export async function commit(
  writer: EngineWriter,
  target: Target,
  changes: Change[],
  text: CommitText,
  second?: Row,
): Promise<Row> {
  const { memory, head } = target
  const before = head.snapshot
  // The state is changed in place: if anything fails from here on, what the head holds is no commit's state.
  head.snapshot = undefined
  const state = before?.state ?? new State(memory.prefix)
  const objects = newObjects(memory.prefix, changes)
  const seq = await writer.nextSeq()
  const appends = state.apply(seq, { changes }, objects)
  const lookup = new ChangeLookup(writer, memory.id)
  const stateId = await state.id((missing) => lookup.find(missing))
  const parent = before?.row
  const parentRows = [parent, second].filter((row) => row !== undefined)
  const parents = parentRows.map((row) => row.id)
  const { line, depth, isFirst } = await nextPlace(writer, memory.id, parent)
  let { time } = text
  let id = objectId(encodeCommit({ ...text, time, parents, state: stateId }))
  if (!isFirst) {
    // The same add on two branches with one head, by one author, in one millisecond: it would be one commit, so one item.
    for (let twin = await rowOf(writer, memory.id, id); twin !== undefined; ) {
      if (text.hasOwnTime) return adopt(writer, target, parent, twin, text)
      time++
      id = objectId(encodeCommit({ ...text, time, parents, state: stateId }))
      twin = await rowOf(writer, memory.id, id)
    }
  }
  const body = encodeRecord({ ...text, time, state: stateId, changes })
  const row: Row = {
    seq,
    memory: memory.id,
    line,
    depth,
    parents: parentRows.map((row) => row.seq),
    id,
    body,
  }
  await writer.append(row)
  for (const { key, value } of indexEntries(row, changes, second))
    await writer.putEntry(memory.id, key, value)
  if (text.request !== undefined) await writer.putEntry(memory.id, requestKey(text.request.key), encode(seq))
  await moveBranch(writer, target, parent, row)
  head.snapshot = { row, state, appendsFrom: appends ? (before?.appendsFrom ?? -1) : row.depth }
  return row
}

async function moveBranch(
  writer: EngineWriter,
  { memory, branch }: Target,
  from: Row | undefined,
  to: Row,
): Promise<void> {
  if (await writer.moveRef(memory.id, branch, from?.seq, to.seq)) return
  throw new MnemError('busy', 'Another writer moved the branch inside the write lock; try again.')
}

/** Move the branch that is held on to a commit that is there already. */
export async function moveHead(
  writer: EngineWriter,
  target: Target,
  from: Row | undefined,
  to: Row,
): Promise<void> {
  // Its state is read anew at the next use.
  target.head.snapshot = undefined
  await moveBranch(writer, target, from, to)
}

/** A commit that is there already, made on another branch: this branch comes to stand on it too. */
async function adopt(
  writer: EngineWriter,
  target: Target,
  from: Row | undefined,
  row: Row,
  { request }: CommitText,
): Promise<Row> {
  if (request !== undefined) {
    await rememberNothing(writer, target.memory.id, request, row)
  }
  await moveBranch(writer, target, from, row)
  return row
}

/** The row of a commit, by its whole id. */
export async function rowOf(writer: EngineWriter, memory: number, id: Uint8Array): Promise<Row | undefined> {
  const [from, to] = commitRange(toHex(id))
  const seqs = (await writer.entries(memory, from, to)).map(({ key }) => commitKeySeq(key))
  const rows = seqs.length === 0 ? [] : await writer.rows(memory, seqs)
  return rows.find((row) => Buffer.compare(row.id, id) === 0)
}

/** The ids of the objects that changes make. */
export function newObjects(prefix: string, changes: readonly Change[]): Map<number, Uint8Array> {
  const objects = new Map<number, Uint8Array>()
  for (const change of changes) {
    if (change.kind === 'item')
      objects.set(change.number, nodeObjectId(itemId(prefix, change.number), change.fields))
  }
  return objects
}

/** On the parent's line if the parent is its last commit, else the first of a new line; and whether it is its first child. */
export async function nextPlace(
  writer: EngineWriter,
  memory: number,
  parent: Row | undefined,
): Promise<{ line: number; depth: number; isFirst: boolean }> {
  if (parent === undefined) return { line: await writer.newLine(memory), depth: 0, isFirst: true }
  const depth = parent.depth + 1
  const [follower] = await writer.line(memory, parent.line, depth, depth)
  const isFirst = follower === undefined
  return { line: isFirst ? parent.line : await writer.newLine(memory), depth, isFirst }
}

/** What is kept for speed of a row and its changes: everything but its idempotency key. */
export function* indexEntries(
  row: Row,
  changes: readonly Change[],
  second: Row | undefined,
): Generator<Entry> {
  const item = (number: number, set: boolean) => ({
    key: itemKey(number, row.line, row.depth),
    value: itemValue(row.seq, set),
  })
  yield { key: commitKey(row.id, row.seq), value: new Uint8Array() }
  for (const change of changes) {
    if (change.kind === 'item' || change.kind === 'redacted') yield item(change.number, true)
    if (change.kind === 'remove') for (let i = 0; i < change.count; i++) yield item(change.from + i, false)
  }
  if (second !== undefined)
    yield { key: mergeKey(row.line, row.depth), value: mergeValue(row.seq, second.line, second.depth) }
}

/** What was done under an idempotency key: the row of its commit (`found`: of one that there was already), or that none was due. */
export type Replay = { row: Row; found?: true } | 'nothing'

/** Look a key up. Throws `conflict` where it stands for another request. */
export async function findReplay(
  writer: EngineWriter,
  memory: number,
  request: { key: string; digest: Uint8Array },
): Promise<Replay | undefined> {
  const key = requestKey(request.key)
  const [entry] = await writer.entries(memory, key, after(key), { limit: 1 })
  if (entry === undefined) return undefined
  const value = decode(entry.value)
  let digest: Uint8Array | undefined
  let replay: Replay = 'nothing'
  if (typeof value === 'number') {
    const [row] = (await writer.rows(memory, [value])) as [Row]
    digest = decodeRecord(row.body).request?.digest
    replay = { row }
  } else if (Array.isArray(value)) {
    digest = value[0] as Uint8Array
    if (typeof value[1] === 'number')
      replay = { row: (await writer.rows(memory, [value[1]]))[0] as Row, found: true }
  }
  if (digest !== undefined && Buffer.compare(digest, request.digest) === 0) return replay
  throw new MnemError(
    'conflict',
    'This idempotency_key was used for another request on this memory; take a new key for a new request.',
    {
      reason: 'idempotency_key',
    },
  )
}

/** Remember that a request under a key had nothing to commit, or which commit there was already for it. */
export async function rememberNothing(
  writer: EngineWriter,
  memory: number,
  request: { key: string; digest: Uint8Array },
  row?: Row,
): Promise<void> {
  const value = row === undefined ? [request.digest] : [request.digest, row.seq]
  await writer.putEntry(memory, requestKey(request.key), encode(value))
}
