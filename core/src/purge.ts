import { breathe } from './breathe.ts'
import { stretches } from './chain.ts'
import { ChangeLookup, settingObject } from './change-lookup.ts'
import { decode, encode } from './codec.ts'
import type { EngineReader, EngineWriter, MemoryRecord, Row } from './engine/engine.ts'
import { invalidParams, MnemError } from './errors.ts'
import { toHex } from './id.ts'
import { copiesOf, originOf, showOrigin } from './identity.ts'
import { events } from './item-index.ts'
import { members } from './json.ts'
import { EVERY_MEMORY, itemRange, purgedKey, purgedObject, purgedRange, readItemValue } from './keys.ts'
import type { Copy } from './merge.ts'
import { itemId, itemNumber, noSuchItem } from './names.ts'
import { ascending } from './reach.ts'
import { type Change, decodeRecord, encodeRecord } from './record.ts'
import { resolve } from './refs.ts'
import type { Purged, PurgeRequest } from './types.ts'

/**
 * A purge takes the content of items out of every row that holds it: under every number that they have had, in every
 * version, on every branch. What is left is the id of each object, so that ids of states and commits stay and can be
 * derived still. It goes by origin (shared/merge.md) and then by object, because an equal object is the same content.
 */

const REASON_BYTES = 64 * 1024
const IDS = 1000
/** Bytes of a purged content that are looked for in the files. */
const TRACE = 32

/** Refuse what can be refused before anything is read. */
export function checkPurge({ ids, reason }: PurgeRequest): void {
  if (ids.length === 0) throw invalidParams('ids', 'is empty; give at least one id')
  if (ids.length > IDS)
    throw new MnemError(
      'too_large',
      `ids holds ${ids.length}; one purge takes at most ${IDS}: purge in several.`,
      {
        path: 'ids',
        limit: IDS,
        actual: ids.length,
      },
    )
  if (reason.trim() === '') throw invalidParams('reason', 'is empty; say why, it is kept with the purge')
  if (Buffer.byteLength(reason) > REASON_BYTES)
    throw invalidParams('reason', `is longer than ${REASON_BYTES} bytes`)
}

/** The items that the ids name: live at `at`, or without it the last ones that were called so. */
export async function originsOf(
  reader: EngineReader,
  memory: MemoryRecord,
  { ids, branch, at }: PurgeRequest,
): Promise<Set<string>> {
  const row = await resolve(reader, memory, branch, at)
  const chain = row === undefined ? [] : await stretches(reader, row)
  const origins = new Set<string>()
  for (const id of ids) {
    const number = itemNumber(memory.prefix, id)
    if (number === undefined) throw noSuchItem(memory.name, id)
    let seq: number | undefined
    for await (const event of events(reader, memory.id, number, chain)) {
      if (event.set) seq = event.seq
      if (event.set || at !== undefined) break
    }
    if (seq === undefined) throw noSuchItem(memory.name, id)
    const [copy] = await copiesOf(reader, memory.id, [{ number, seq }])
    origins.add((copy as Copy).origin)
  }
  return origins
}

/** Where values of some items stand. */
export class Places {
  private readonly origins: ReadonlySet<string>
  readonly memory: MemoryRecord
  /** Rows, and the numbers in them. */
  private readonly found = new Map<number, Set<number>>()
  /** The objects, by number and id. */
  private readonly objects = new Map<string, { number: number; object: Uint8Array }>()
  private looked = 0

  constructor(memory: MemoryRecord, origins: ReadonlySet<string>) {
    this.memory = memory
    this.origins = origins
  }

  /** Look through the commits that were not looked through yet. */
  async look(reader: EngineReader): Promise<void> {
    let read = 0
    for await (const row of ascending(reader, this.memory.id, this.looked, Number.MAX_SAFE_INTEGER)) {
      for (const change of decodeRecord(row.body).changes) this.lookAt(row, change)
      this.looked = row.seq
      if (++read % 64 === 0) await breathe()
    }
  }

  /** Take the content out of all rows that hold it, and of those that hold an equal object. Gives what it was. */
  async redact(writer: EngineWriter): Promise<Redaction[]> {
    for (const { number, object } of Array.from(this.objects.values()))
      for (const { row } of await holders(writer, this.memory, number, object)) this.add(row.seq, number)
    const redactions: Redaction[] = []
    for (const [seq, numbers] of this.found) {
      const [row] = (await writer.rows(this.memory.id, [seq])) as [Row]
      const record = decodeRecord(row.body)
      const before = redactions.length
      const changes = record.changes.map((change): Change => {
        if (change.kind !== 'item' || !numbers.has(change.number)) return change
        const { number, origin, fields } = change
        const object = settingObject(itemId(this.memory.prefix, number), change)
        redactions.push({ number, object, content: fields.content })
        return { kind: 'redacted', number, object, origin }
      })
      if (redactions.length > before)
        await writer.rewrite({ ...row, body: encodeRecord({ ...record, changes }) })
    }
    return redactions
  }

  /** Names of other memories that hold one of the objects, as imports of this one do. */
  async elsewhere(reader: EngineReader): Promise<string[]> {
    const names: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await reader.memories('', after, 1000)
      for (const memory of page) if (await this.isIn(reader, memory)) names.push(memory.name)
      after = page.at(-1)?.name
      if (page.length < 1000) return names
    }
  }

  private async isIn(reader: EngineReader, memory: MemoryRecord): Promise<boolean> {
    if (memory.id === this.memory.id || memory.prefix !== this.memory.prefix) return false
    for (const { number, object } of this.objects.values())
      if ((await holders(reader, memory, number, object)).some(({ hasContent }) => hasContent)) return true
    return false
  }

  private lookAt(row: Row, change: Change): void {
    if (change.kind !== 'item' && change.kind !== 'redacted') return
    const { number } = change
    if (!this.origins.has(showOrigin(originOf(change) ?? { commit: row.id, number }))) return
    this.add(row.seq, number)
    const object = settingObject(itemId(this.memory.prefix, number), change)
    this.objects.set(`${number} ${toHex(object)}`, { number, object })
  }

  private add(seq: number, number: number): void {
    const numbers = this.found.get(seq) ?? new Set()
    this.found.set(seq, numbers.add(number))
  }
}

/** Content that was taken out of a row. */
export interface Redaction {
  number: number
  object: Uint8Array
  content: string
}

/** The rows of a memory that set an object under this number, and whether its content is still there. */
export async function holders(
  reader: EngineReader,
  { id: memory, prefix }: MemoryRecord,
  number: number,
  object: Uint8Array,
): Promise<{ row: Row; hasContent: boolean }[]> {
  const lookup = new ChangeLookup(reader, memory)
  const found: { row: Row; hasContent: boolean }[] = []
  for (const { value } of await reader.entries(memory, ...itemRange(number))) {
    const { seq, set } = readItemValue(value)
    if (!set) continue
    const [written] = await lookup.findWithRows([{ key: number, seq }])
    if (written === undefined) continue
    const { row, change } = written
    if (settingObject(itemId(prefix, number), change).equals(object))
      found.push({ row, hasContent: change.kind !== 'redacted' })
  }
  return found
}

/** Who purged, when and why. */
export type PurgeNote = Pick<Purged, 'author' | 'time' | 'reason'>

/** Note which object was purged: with the memory, and that it was, for good, with the store. */
export async function notePurged(
  writer: EngineWriter,
  { id }: MemoryRecord,
  object: Uint8Array,
  number: number,
  note: PurgeNote,
): Promise<void> {
  const key = purgedKey(object)
  await writer.putEntry(id, key, purgedValue(number, note))
  await writer.putEntry(EVERY_MEMORY, key, encode([number, note.time]))
}

/** The value of `purgedKey`. */
export function purgedValue(number: number, { author, time, reason }: PurgeNote): Buffer {
  return encode([number, author, time, reason])
}

/** What was purged of a memory, in the order of the objects' ids. */
export async function purgedOf(reader: EngineReader, { id, prefix }: MemoryRecord): Promise<Purged[]> {
  return (await reader.entries(id, ...purgedRange())).map(({ key, value }) => {
    const [number, author, time, reason] = decode(value) as [number, string, number, string]
    return { object: toHex(purgedObject(key)), id: itemId(prefix, number), author, time, reason }
  })
}

/** What was ever purged of any memory of the store: objects as hex, with the number that each has. */
export async function purgedEver(reader: EngineReader): Promise<Map<string, number>> {
  const found = await reader.entries(EVERY_MEMORY, ...purgedRange())
  return new Map(
    found.map(({ key, value }) => [toHex(purgedObject(key)), (decode(value) as [number, number])[0]]),
  )
}

/** Pieces of content by which what is left of it in a file is known. */
export function tracesOf(redactions: readonly Redaction[]): Uint8Array[] {
  return redactions.flatMap(({ content }) => {
    if (Buffer.byteLength(content) <= 2 * TRACE) return [Buffer.from(content)]
    // Not the names and types around the values, which many items share.
    const values = members(content).filter(({ key }) => key !== 'mime_type')
    return values.flatMap(({ start, end }) => slices(Buffer.from(content.slice(start, end))))
  })
}

/** Of a long text only a part may be left. */
function slices(bytes: Buffer): Uint8Array[] {
  if (bytes.length <= TRACE) return bytes.length < TRACE / 4 ? [] : [bytes]
  return [0, 1, 2, 3].map((quarter) => {
    const start = Math.floor(((bytes.length - TRACE) * quarter) / 3)
    return bytes.subarray(start, start + TRACE)
  })
}
