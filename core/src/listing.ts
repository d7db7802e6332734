import { breathe } from './breathe.ts'
import { ChangeLookup } from './change-lookup.ts'
import type { EngineReader, MemoryRecord, Row } from './engine/engine.ts'
import { MnemError } from './errors.ts'
import { type Heads, replay, type Snapshot } from './heads.ts'
import { toHex } from './id.ts'
import { renderNode } from './item.ts'
import type { JsonText } from './json.ts'
import { resolve } from './refs.ts'
import type { ItemPlace } from './state.ts'
import type { Have, Listing, ListingRequest } from './types.ts'

/** Items rendered between two looks at the budget. */
const CHUNK = 256

/** Which items an answer shows of a snapshot: taken at one moment, so that later commits can't mix in. */
interface Selection {
  row: Row
  count: number
  mode: Listing['mode']
  places: ItemPlace[]
}

/**
 * Read the items at the head or at `at`, as far as the caller does not hold them already. Undefined where a purge came
 * between: the memory is to be looked up again.
 */
export async function list(
  reader: EngineReader,
  heads: Heads,
  memory: MemoryRecord,
  request: ListingRequest,
  limitBytes: number,
): Promise<Listing | undefined> {
  const branch = request.branch ?? memory.default_branch
  const selection = await select(reader, heads, memory, branch, request)
  const base = { epoch: memory.epoch, branch }
  if (selection === undefined)
    return { commit: null, ...base, count: 0, mode: 'full', items: [], ...leftOut(request, 0) }
  const { row, count, mode, places } = selection
  const head = { commit: toHex(row.id), ...base, count, mode }
  if (mode === 'unchanged') return head
  const render = new Renderer(reader, memory)
  const items = hasBudget(request)
    ? await newest(render, places, request, limitBytes)
    : await oldest(render, places, limitBytes)
  if (render.purged > 0 && request.redacted !== true) return undefined
  if (hasBudget(request)) return { ...head, items, ...leftOut(request, count - items.length) }
  return items.length < places.length ? { ...head, items, more: true } : { ...head, items }
}

function hasBudget(request: ListingRequest): boolean {
  return request.max_items !== undefined || request.max_bytes !== undefined
}

function leftOut(request: ListingRequest, omitted: number): { omitted?: number } {
  return hasBudget(request) ? { omitted } : {}
}

async function select(
  reader: EngineReader,
  heads: Heads,
  memory: MemoryRecord,
  branch: string,
  request: ListingRequest,
): Promise<Selection | undefined> {
  const have = request.have?.epoch === memory.epoch ? request.have : undefined
  const held = have === undefined ? undefined : await heldRow(reader, memory, have)
  const take = (snapshot: Snapshot | undefined) => snapshot && selectFrom(snapshot, have, held, request)
  if (request.at === undefined) return heads.read(reader, memory, branch, take)
  const row = await resolve(reader, memory, branch, request.at)
  return row && take(await replay(reader, memory.prefix, row))
}

function selectFrom(
  snapshot: Snapshot,
  have: Have | undefined,
  held: Row | undefined,
  request: ListingRequest,
): Selection {
  const { row, state, appendsFrom } = snapshot
  const isAll = request.redacted === true
  const count = isAll ? state.count : state.whole
  const items = (from: number) => (isAll ? state.items(from) : state.wholeItems(from))
  const full = (): Selection => ({ row, count, mode: 'full', places: items(0) })
  if (have === undefined || held === undefined) return full()
  if (held.seq === row.seq && have.count === count) return { row, count, mode: 'unchanged', places: [] }
  if (hasBudget(request) || have.count > count) return full()
  const onlyAppendsSince = held.line === row.line && held.depth <= row.depth && held.depth >= appendsFrom
  if (!onlyAppendsSince) return full()
  const places = items(Math.max(have.count - 1, 0))
  const lastHeld = have.count > 0 ? places.shift() : undefined
  // What it claims to hold must have been there at its commit.
  if (lastHeld !== undefined && lastHeld.seq > held.seq) return full()
  return { row, count, mode: 'appended', places }
}

/** The row of the commit that the caller holds; undefined where this memory has none such, so that all is sent. */
async function heldRow(reader: EngineReader, memory: MemoryRecord, have: Have): Promise<Row | undefined> {
  if (have.commit.length !== 64) return undefined
  try {
    return await resolve(reader, memory, undefined, have.commit)
  } catch (error) {
    if (error instanceof MnemError && error.kind === 'invalid_ref') return undefined
    throw error
  }
}

/** From the oldest on, as many as fit into one answer; at least one, so that a caller gets on. */
async function oldest(render: Renderer, places: ItemPlace[], limitBytes: number): Promise<JsonText[]> {
  const items: JsonText[] = []
  let bytes = 0
  for (let start = 0; start < places.length; start += CHUNK) {
    await breathe()
    for (const item of await render.items(places.slice(start, start + CHUNK))) {
      bytes += Buffer.byteLength(item.text) + 1
      if (bytes > limitBytes && items.length > 0) return items
      items.push(item)
    }
  }
  return items
}

/** The newest that fit the caller's budget, oldest first. */
async function newest(
  render: Renderer,
  places: ItemPlace[],
  request: ListingRequest,
  limitBytes: number,
): Promise<JsonText[]> {
  const maxItems = Math.min(request.max_items ?? places.length, places.length)
  const maxBytes = Math.min(request.max_bytes ?? limitBytes, limitBytes)
  const items: JsonText[] = []
  let bytes = 0
  for (let end = places.length; end > places.length - maxItems; end -= CHUNK) {
    await breathe()
    const start = Math.max(end - CHUNK, places.length - maxItems)
    for (const item of (await render.items(places.slice(start, end))).reverse()) {
      bytes += Buffer.byteLength(item.text)
      if (bytes > maxBytes) return items.reverse()
      items.push(item)
    }
  }
  return items.reverse()
}

/** Gives the JSON of items, by the changes that set them. */
class Renderer {
  private readonly lookup: ChangeLookup
  private readonly prefix: string
  /** Items so far whose content was purged. */
  purged = 0

  constructor(reader: EngineReader, memory: MemoryRecord) {
    this.lookup = new ChangeLookup(reader, memory.id)
    this.prefix = memory.prefix
  }

  async items(places: readonly ItemPlace[]): Promise<JsonText[]> {
    const changes = await this.lookup.find(places.map(({ number, seq }) => ({ key: number, seq })))
    return changes.map((change, index) => {
      if (change.kind === 'redacted') this.purged++
      return renderNode(this.prefix, (places[index] as ItemPlace).number, change)
    })
  }
}
