import { encode } from './codec.ts'
import { commit, findReplay, type Replay, rememberNothing, type Target } from './commit.ts'
import type { EngineWriter, MemoryRecord, Row } from './engine/engine.ts'
import { invalidParams, MnemError } from './errors.ts'
import { type HeldHead, replay } from './heads.ts'
import { objectId, toHex } from './id.ts'
import { packItem } from './item.ts'
import type { Resolution } from './merge.ts'
import { mergedResult, mergeInto } from './merging.ts'
import { checkMemoryName, checkText, itemId, itemNumber, MAX_NUMBER, noSuchItem } from './names.ts'
import { type NodeFields, setProvenance } from './object.ts'
import { type Change, decodeRecord } from './record.ts'
import { noSuchBranch, resolve, unknownCommit } from './refs.ts'
import type { State } from './state.ts'
import type {
  AddRequest,
  AddResult,
  ForgetRequest,
  ForgetResult,
  MergeRequest,
  MergeResolution,
  MergeResult,
  WriteRequest,
} from './types.ts'

/** The three ways to change a memory. Each is prepared outside the write lock and made inside it. */

export const DEFAULT_BRANCH = 'main'
export const DEFAULT_AUTHOR = 'agent'
export const AUTHOR_BYTES = 255
const MESSAGE_BYTES = 64 * 1024

export interface WriteLimits {
  itemBytes: number
  itemsPerAdd: number
}

/** What a write works in: the open transaction, and the hold on a branch's head for as long as that lasts. */
export interface Transaction {
  writer: EngineWriter
  hold(memory: MemoryRecord, branch: string): Promise<HeldHead>
}

type Work<T> = (transaction: Transaction) => Promise<T>

/** Prepare an add: everything that can be refused is refused here. */
export function prepareAdd(request: AddRequest, limits: WriteLimits): Work<AddResult> {
  const { items } = request
  if (items.length === 0) throw invalidParams('items', 'is empty; give at least one item')
  if (items.length > limits.itemsPerAdd) {
    const message = `items holds ${items.length}; one add takes at most ${limits.itemsPerAdd}: send them in several.`
    throw new MnemError('too_large', message, {
      path: 'items',
      limit: limits.itemsPerAdd,
      actual: items.length,
    })
  }
  const nodes = items.map((item, index) => packItem(item, `items[${index}]`, limits.itemBytes))
  const write = prepareWrite(request, 'add', nodes.map(describe))
  return async (transaction) => {
    const target = await findTarget(transaction, request)
    const prefix = target.memory.prefix
    const replayed = write.key && (await findReplay(transaction.writer, target.memory.id, write.key))
    if (replayed) return { ...addResult(prefix, replayed as { row: Row }), replayed: true }
    const first = target.head.snapshot?.state.top ?? 0
    if (first + nodes.length - 1 > MAX_NUMBER) {
      throw new MnemError(
        'too_large',
        'This memory has used up its item numbers; clear it or begin another.',
        {
          limit: MAX_NUMBER,
          actual: first + nodes.length,
        },
      )
    }
    const changes: Change[] = nodes.map((fields, index) => ({ kind: 'item', number: first + index, fields }))
    changes.push({ kind: 'counter', value: first + nodes.length })
    const message = nodes.length === 1 ? `add item to ${prefix}` : `add ${nodes.length} items to ${prefix}`
    return addResult(prefix, { row: await commit(transaction.writer, target, changes, write.text(message)) })
  }
}

function addResult(prefix: string, { row }: { row: Row }): AddResult {
  const ids: string[] = []
  for (const change of decodeRecord(row.body).changes) {
    if (change.kind === 'item' || change.kind === 'redacted') ids.push(itemId(prefix, change.number))
  }
  return { commit: toHex(row.id), ids }
}

/** Prepare a clear: every node that is live goes, the counter too, so that numbers begin again. */
export function prepareClear(request: WriteRequest): Work<ForgetResult> {
  const write = prepareWrite(request, 'clear', [])
  return async (transaction) => {
    const record = await transaction.writer.memory(request.memory)
    if (record === undefined && write.key === undefined) return clearedNothing(request)
    const target = await findTarget(transaction, request)
    const replayed = write.key && (await findReplay(transaction.writer, target.memory.id, write.key))
    if (replayed) return { ...forgetResult(replayed), replayed: true }
    const state = target.head.snapshot?.state
    if (state === undefined || state.isEmpty) {
      if (write.key) await rememberNothing(transaction.writer, target.memory.id, write.key)
      return { commit: null, forgotten: 0 }
    }
    const changes = clearing(state)
    const nodes = state.count + Array.from(state.otherNodes).length + (state.hasCounter ? 1 : 0)
    return forgetResult({
      row: await commit(transaction.writer, target, changes, write.text(forgetMessage(nodes))),
    })
  }
}

function clearedNothing(request: WriteRequest): ForgetResult {
  if (request.branch !== undefined && request.branch !== DEFAULT_BRANCH)
    throw noSuchBranch(request.memory, request.branch)
  return { commit: null, forgotten: 0 }
}

function clearing(state: State): Change[] {
  const changes = removals(state.items().map(({ number }) => number))
  for (const id of state.otherNodes) changes.push({ kind: 'remove_node', id })
  if (state.hasCounter) changes.push({ kind: 'remove_counter' })
  return changes
}

function forgetMessage(nodes: number): string {
  return nodes === 1 ? 'forget 1 node' : `forget ${nodes} nodes`
}

/** Prepare a forget: all of the ids, or none. The counter stays, so that no number is given again. */
export function prepareForget(request: ForgetRequest, limits: WriteLimits): Work<ForgetResult> {
  const { ids } = request
  if (ids.length === 0) throw invalidParams('ids', 'is empty; give at least one id')
  if (ids.length > limits.itemsPerAdd) {
    const message = `ids holds ${ids.length}; one forget takes at most ${limits.itemsPerAdd}: send them in several.`
    throw new MnemError('too_large', message, { path: 'ids', limit: limits.itemsPerAdd, actual: ids.length })
  }
  const twice = repeated(ids)
  if (twice !== -1) throw invalidParams(`ids[${twice}]`, 'stands twice; name each item once')
  const write = prepareWrite(request, 'forget', [...ids, request.at ?? null])
  return async (transaction) => {
    const record = await transaction.writer.memory(request.memory)
    if (record === undefined) throw noSuchItem(request.memory, ids[0] as string)
    const target = await findTarget(transaction, request)
    const replayed = write.key && (await findReplay(transaction.writer, target.memory.id, write.key))
    if (replayed) return { ...forgetResult(replayed), replayed: true }
    const numbers = await liveNumbers(transaction, target, request)
    const message = ids.length === 1 ? `forget ${ids[0]}` : forgetMessage(ids.length)
    return forgetResult({
      row: await commit(transaction.writer, target, removals(numbers), write.text(message)),
    })
  }
}

/** The numbers that the ids name: each live, and still the item that it was at `at`. */
async function liveNumbers(
  transaction: Transaction,
  target: Target,
  request: ForgetRequest,
): Promise<number[]> {
  const { memory, head } = target
  const seen = request.at === undefined ? undefined : await stateAt(transaction, target, request)
  const numbers = request.ids.map((id) => {
    const number = itemNumber(memory.prefix, id)
    const slot = number === undefined ? undefined : head.snapshot?.state.item(number)
    if (number === undefined || slot === undefined) throw noSuchItem(memory.name, id)
    if (seen !== undefined && seen.item(number)?.seq !== slot.seq) throw noSuchItem(memory.name, id)
    return number
  })
  return numbers.sort((a, b) => a - b)
}

async function stateAt(
  { writer }: Transaction,
  { memory, branch }: Target,
  request: ForgetRequest,
): Promise<State | undefined> {
  const row = await resolve(writer, memory, branch, request.at)
  return row === undefined ? undefined : (await replay(writer, memory.prefix, row)).state
}

/** Removals of these numbers, in ascending order, as runs. */
export function removals(numbers: readonly number[]): Change[] {
  const runs: Extract<Change, { kind: 'remove' }>[] = []
  for (const number of numbers) {
    const last = runs.at(-1)
    if (last !== undefined && last.from + last.count === number) last.count++
    else runs.push({ kind: 'remove', from: number, count: 1 })
  }
  return runs
}

function forgetResult(replay: Replay): ForgetResult {
  if (replay === 'nothing') return { commit: null, forgotten: 0 }
  let forgotten = 0
  for (const change of decodeRecord(replay.row.body).changes)
    if (change.kind === 'remove') forgotten += change.count
  return { commit: toHex(replay.row.id), forgotten }
}

/** Prepare a merge of a commit into a branch. */
export function prepareMerge(request: MergeRequest, limits: WriteLimits): Work<MergeResult> {
  const { memory: name, from, into, strategy, resolutions = {} } = request
  if (strategy !== undefined && strategy !== 'ours' && strategy !== 'theirs')
    throw invalidParams('strategy', 'must be "ours" or "theirs"')
  const settled = Object.entries(resolutions).map(([id, given]) => ({
    id,
    resolution: readResolution(given, id, limits.itemBytes),
  }))
  const asked = [
    String(from),
    strategy ?? null,
    ...settled.map(({ id, resolution }) => [
      id,
      typeof resolution === 'object' ? describe(resolution.fields) : resolution,
    ]),
  ]
  const write = prepareWrite({ ...request, branch: into }, 'merge', asked)
  return async (transaction) => {
    const { writer } = transaction
    if ((await writer.memory(name)) === undefined)
      throw unknownCommit(name, String(from), 'nobody has written to it')
    const target = await findTarget(transaction, { ...request, branch: into })
    const { prefix } = target.memory
    const replayed = write.key && (await findReplay(writer, target.memory.id, write.key))
    if (replayed === 'nothing') return { status: 'up_to_date', replayed: true }
    if (replayed) return { ...mergedResult(prefix, replayed.row, replayed.found === true), replayed: true }
    const theirs = await resolve(writer, target.memory, undefined, from)
    if (theirs === undefined) throw unknownCommit(name, String(from), 'there is no commit there yet')
    const isBranch = typeof from === 'string' && (await writer.ref(target.memory.id, from)) !== undefined
    const { result, row } = await mergeInto(transaction, target, {
      theirs,
      branch: isBranch && from !== target.branch ? from : undefined,
      resolutions: new Map(settled.map(({ id, resolution }) => [numberOf(prefix, id), resolution])),
      strategy,
      text: write.text(`merge ${from} into ${target.branch}`),
    })
    if (write.key && result.status !== 'merged' && result.status !== 'conflicts')
      await rememberNothing(writer, target.memory.id, write.key, row)
    return result
  }
}

function numberOf(prefix: string, id: string): number {
  const number = itemNumber(prefix, id)
  if (number === undefined) throw invalidParams(`resolutions[${JSON.stringify(id)}]`, 'is no id of an item')
  return number
}

const WORDS: readonly string[] = ['ours', 'theirs', 'base', 'delete']

function readResolution(given: MergeResolution, id: string, itemBytes: number): Resolution {
  const path = `resolutions[${JSON.stringify(id)}]`
  if (typeof given === 'object') return { fields: packItem(given, path, itemBytes) }
  if (WORDS.includes(given)) return given
  throw invalidParams(path, 'must be "ours", "theirs", "base", "delete" or an item')
}

/** What all writes share: the commit's text, and the key with a digest of everything that was asked. */
function prepareWrite(request: WriteRequest, method: string, asked: Parameters<typeof encode>[0]) {
  checkMemoryName(request.memory)
  if (request.branch !== undefined) checkText(request.branch, 'branch')
  checkBounded(request.author, 'author', AUTHOR_BYTES)
  checkBounded(request.message, 'message', MESSAGE_BYTES)
  const { time } = request
  if (time !== undefined && (!Number.isSafeInteger(time) || time < 0))
    throw invalidParams('time', 'is no time in Unix ms')
  let key: { key: string; digest: Uint8Array } | undefined
  if (request.idempotency_key !== undefined) {
    checkBounded(request.idempotency_key, 'idempotency_key', 255)
    if (request.idempotency_key === '')
      throw invalidParams('idempotency_key', 'is empty; leave it out or give a key')
    const { branch, author, message } = request
    const digest = objectId(
      encode([method, asked, branch ?? null, author ?? null, message ?? null, time ?? null]),
    ).subarray(0, 16)
    key = { key: request.idempotency_key, digest }
  }
  const text = (message: string) => ({
    author: request.author ?? DEFAULT_AUTHOR,
    message: request.message ?? message,
    time: time ?? Date.now(),
    hasOwnTime: time !== undefined,
    request: key,
  })
  return { key, text }
}

export function checkBounded(text: string | undefined, path: string, bytes: number): void {
  if (text === undefined) return
  checkText(text, path)
  const size = Buffer.byteLength(text)
  if (size > bytes) throw invalidParams(path, `has ${size} bytes; at most ${bytes} are kept`)
}

function describe({ content, provenance, event_time }: NodeFields) {
  return [content, setProvenance(provenance) ?? null, event_time ?? null]
}

/** The branch that a write goes to; a memory that does not exist yet is made. */
async function findTarget(transaction: Transaction, request: WriteRequest): Promise<Target> {
  let memory = await transaction.writer.memory(request.memory)
  if (memory === undefined) {
    if (request.branch !== undefined && request.branch !== DEFAULT_BRANCH)
      throw noSuchBranch(request.memory, request.branch)
    memory = await transaction.writer.createMemory(request.memory, request.memory, DEFAULT_BRANCH)
  }
  const branch = request.branch ?? memory.default_branch
  const head = await transaction.hold(memory, branch)
  if (head.snapshot === undefined && branch !== memory.default_branch) throw noSuchBranch(memory.name, branch)
  return { memory, branch, head }
}

/** Where a text stands for the second time, or -1. */
function repeated(texts: readonly string[]): number {
  const seen = new Set<string>()
  return texts.findIndex((text) => seen.size === seen.add(text).size)
}
