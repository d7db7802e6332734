import { type CborValue, decode, encode } from './codec.ts'
import { MnemError } from './errors.ts'
import { ID_BYTES } from './id.ts'
import type { NodeFields } from './object.ts'
import { NOTE, setProvenance } from './object.ts'
import type { Provenance } from './types.ts'

/**
 * The body of a stored row: one commit as its own fields and what it changed against its first parent (ADR 0005). The
 * node, counter, state and commit objects are derived from it; ids of the commit and its state are kept, so that a log
 * needs no replay.
 *
 * A body is a canonical CBOR array `[1, time, author, message, state, changes, key?, digest?]`. Each change is an array
 * that starts with its code:
 *
 *     [0, number, content, provenance, event_time, origin]   an item is set; trailing nulls are left out
 *     [1, id, content, content_kind, provenance, event_time] another node is set
 *     [2, value]                                             the counter is set
 *     [3, from, count]                                       a run of items is removed
 *     [4, id]                                                another node is removed
 *     [5]                                                    the counter is removed
 *     [6, number, object, origin]                            an item whose content was purged: its object's id remains
 *
 * `origin` is for what a merge sets and for edits: `[commit id, number, theirs?]`, where the item was born, and where its
 * value is that of the second parent the number that it has there.
 */
export type Change =
  | { kind: 'item'; number: number; fields: NodeFields; origin?: Origin | undefined }
  | { kind: 'node'; id: string; fields: NodeFields }
  | { kind: 'counter'; value: number }
  | { kind: 'remove'; from: number; count: number }
  | { kind: 'remove_node'; id: string }
  | { kind: 'remove_counter' }
  | { kind: 'redacted'; number: number; object: Uint8Array; origin?: Origin | undefined }

/** Where an item was born: commit id and the number it had there. */
export interface Origin {
  commit: Uint8Array
  number: number
  /** The item's number in the second parent, where its value was taken from there. */
  theirs?: number | undefined
}

export interface CommitRecord {
  time: number
  author: string
  message: string
  state: Uint8Array
  changes: Change[]
  /** The caller's idempotency key and a digest of what was asked under it. */
  request?: { key: string; digest: Uint8Array } | undefined
}

const VERSION = 1

export function encodeRecord(record: CommitRecord): Buffer {
  const body: CborValue[] = [
    VERSION,
    record.time,
    record.author,
    record.message,
    record.state,
    record.changes.map(encodeChange),
  ]
  if (record.request !== undefined) body.push(record.request.key, record.request.digest)
  return encode(body)
}

function encodeChange(change: Change): CborValue[] {
  switch (change.kind) {
    case 'item': {
      const { content, provenance, event_time } = change.fields
      return trimmed([
        0,
        change.number,
        content,
        setProvenance(provenance) ?? null,
        event_time ?? null,
        encodeOrigin(change.origin),
      ])
    }
    case 'node': {
      const { content, content_kind, provenance, event_time } = change.fields
      return [
        1,
        change.id,
        content,
        content_kind ?? NOTE,
        setProvenance(provenance) ?? null,
        event_time ?? null,
      ]
    }
    case 'counter':
      return [2, change.value]
    case 'remove':
      return [3, change.from, change.count]
    case 'remove_node':
      return [4, change.id]
    case 'remove_counter':
      return [5]
    case 'redacted':
      return trimmed([6, change.number, change.object, encodeOrigin(change.origin)])
  }
}

function encodeOrigin(origin: Origin | undefined): CborValue[] | null {
  if (origin === undefined) return null
  const { commit, number, theirs } = origin
  return theirs === undefined ? [commit, number] : [commit, number, theirs]
}

function trimmed(values: CborValue[]): CborValue[] {
  let length = values.length
  while (values[length - 1] === null) length--
  return values.slice(0, length)
}

/** Read a row's body. Throws `MnemError` `corrupt_store` for anything that `encodeRecord` does not write. */
export function decodeRecord(body: Uint8Array): CommitRecord {
  const fields = list(decode(body))
  if (fields[0] !== VERSION) throw malformed('an unknown version of row')
  const record: CommitRecord = {
    time: integer(fields[1]),
    author: text(fields[2]),
    message: text(fields[3]),
    state: id(fields[4]),
    changes: list(fields[5]).map(decodeChange),
  }
  if (fields.length > 6) record.request = { key: text(fields[6]), digest: bytes(fields[7]) }
  return record
}

function decodeChange(value: CborValue): Change {
  const [code, a, b, c, d, e] = list(value)
  switch (code) {
    case 0:
      return { kind: 'item', number: integer(a), fields: nodeFields(b, NOTE, c, d), origin: origin(e) }
    case 1:
      return { kind: 'node', id: text(a), fields: nodeFields(b, text(c), d, e) }
    case 2:
      return { kind: 'counter', value: integer(a) }
    case 3:
      return { kind: 'remove', from: integer(a), count: integer(b) }
    case 4:
      return { kind: 'remove_node', id: text(a) }
    case 5:
      return { kind: 'remove_counter' }
    case 6:
      return { kind: 'redacted', number: integer(a), object: id(b), origin: origin(c) }
    default:
      throw malformed('an unknown kind of change')
  }
}

function nodeFields(
  content: CborValue | undefined,
  kind: string,
  provenance: CborValue | undefined,
  time: CborValue | undefined,
): NodeFields {
  const fields: NodeFields = { content: text(content), content_kind: kind }
  if (provenance !== undefined && provenance !== null) {
    if (!(provenance instanceof Map)) throw malformed('provenance that is no map')
    const set: Record<string, string> = {}
    for (const [key, value] of provenance) set[key] = text(value)
    fields.provenance = set as Provenance
  }
  if (time !== undefined && time !== null) fields.event_time = integer(time)
  return fields
}

function origin(value: CborValue | undefined): Origin | undefined {
  if (value === undefined || value === null) return undefined
  const [commit, number, theirs] = list(value)
  const born = { commit: id(commit), number: integer(number) }
  return theirs === undefined ? born : { ...born, theirs: integer(theirs) }
}

function list(value: CborValue | undefined): readonly CborValue[] {
  if (!Array.isArray(value)) throw malformed('a value that should be an array')
  return value
}

function integer(value: CborValue | undefined): number {
  if (typeof value !== 'number') throw malformed('a value that should be an integer')
  return value
}

function text(value: CborValue | undefined): string {
  if (typeof value !== 'string') throw malformed('a value that should be text')
  return value
}

function bytes(value: CborValue | undefined): Uint8Array {
  if (!(value instanceof Uint8Array)) throw malformed('a value that should be bytes')
  return value
}

function id(value: CborValue | undefined): Uint8Array {
  const found = bytes(value)
  if (found.length !== ID_BYTES) throw malformed('an id that has not 32 bytes')
  return found
}

function malformed(problem: string): MnemError {
  return new MnemError('corrupt_store', `A stored row holds ${problem}.`, { problem })
}
