import { type CborValue, compareKeys, encode, encodeHead, MAJOR_BYTES, MAJOR_MAP } from './codec.ts'
import { ID_BYTES, objectId } from './id.ts'
import { type JsonValue, readJson } from './json.ts'
import type { Provenance } from './types.ts'

/** The objects of format_version 1 (format.md): what is hashed, and nothing of how it lies on disk. */

/** A memory node without its id: its content as canonical JSON text, and where it came from. */
export interface NodeFields {
  content: string
  /** `note` in all that we write. */
  content_kind?: string | undefined
  provenance?: Provenance | undefined
  /** Unix ms. */
  event_time?: number | undefined
}

export interface CommitFields {
  parents: readonly Uint8Array[]
  state: Uint8Array
  message: string
  author: string
  /** Unix ms. */
  time: number
}

export const NOTE = 'note'

const PROVENANCE_FIELDS = ['agent_step', 'observation', 'tool_call', 'source', 'note'] as const

/** Only the set fields, or undefined when none is: an empty string is set. */
export function setProvenance(provenance: Provenance | undefined): Map<string, string> | undefined {
  const set = new Map<string, string>()
  for (const field of PROVENANCE_FIELDS) {
    const value = provenance?.[field]
    if (value !== undefined) set.set(field, value)
  }
  return set.size > 0 ? set : undefined
}

/** Canonical CBOR of a memory node. `content` may be given as read from the fields' text, to save reading it twice. */
export function encodeNode(
  id: string,
  fields: NodeFields,
  content: JsonValue = readJson(fields.content),
): Buffer {
  const node = new Map<string, CborValue>([
    ['kind', 'memory_node'],
    ['id', id],
    ['content', content],
    ['content_kind', fields.content_kind ?? NOTE],
  ])
  const provenance = setProvenance(fields.provenance)
  if (provenance !== undefined) node.set('provenance', provenance)
  if (fields.event_time !== undefined) node.set('event_time', fields.event_time)
  return encode(node)
}

/** Canonical CBOR of a commit. */
export function encodeCommit(commit: CommitFields): Buffer {
  return encode(
    new Map<string, CborValue>([
      ['kind', 'commit'],
      ['parents', commit.parents],
      ['state', commit.state],
      ['message', commit.message],
      ['author', commit.author],
      ['time', commit.time],
    ]),
  )
}

/** The head of a byte string that holds an id. */
export const ID_HEAD = encodeHead(MAJOR_BYTES, ID_BYTES)

/** `{"kind": "state", "nodes":` — a state's bytes up to the head of its map. */
const STATE_HEAD = Buffer.concat([encodeHead(MAJOR_MAP, 2), encode('kind'), encode('state'), encode('nodes')])

/** Canonical CBOR of a state: every live node's id and object id, given in any order. */
export function encodeState(nodes: Iterable<readonly [string, Uint8Array]>): Buffer {
  const entries = Array.from(nodes, ([id, object]) => ({ id: Buffer.from(id), object }))
  entries.sort((a, b) => compareKeys(a.id, b.id))
  return encodeStateHead(
    entries.length,
    entries.map(({ id, object }) => [id.toString(), object] as const),
  )
}

/** The first bytes of a state with `count` nodes: up to and with its first entries, which are given in order. */
export function encodeStateHead(count: number, first: readonly (readonly [string, Uint8Array])[]): Buffer {
  const entries = first.flatMap(([id, object]) => [encodeKey(id), ID_HEAD, object])
  return Buffer.concat([STATE_HEAD, encodeHead(MAJOR_MAP, count), ...entries])
}

/** The key of a state's entry. */
export function encodeKey(id: string): Buffer {
  return encode(id)
}

/** The object id of a memory node. */
export function nodeObjectId(id: string, fields: NodeFields, content?: JsonValue): Buffer {
  return objectId(encodeNode(id, fields, content))
}
