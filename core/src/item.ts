import { invalidParams, MnemError } from './errors.ts'
import { canonicalJson, JsonText, type Member, members, stringifyJson } from './json.ts'
import { checkText, itemId } from './names.ts'
import type { NodeFields } from './object.ts'
import { setProvenance } from './object.ts'
import type { Content, NewItem, Provenance } from './types.ts'

/**
 * An item is a node whose content is `{"content": C, "mime_type": …, "metadata": …}` (format.md). Here is the one place
 * that packs what a caller adds into that form and unpacks it again.
 */

const BYTES_KEY = '__bytes_b64__'
const IMAGE_KEY = '__image_b64__'
const WRAPPED_KEY = '__json__'
const RESERVED = [BYTES_KEY, IMAGE_KEY, WRAPPED_KEY]

/** First bytes of every PNG file, as base64 starts with them. */
const PNG_BASE64 = 'iVBORw0KGgo'

/** The node's fields for an item to be added. `path` is where the item stands in the request, for messages. */
export function packItem(item: NewItem, path: string, maxBytes: number): NodeFields {
  checkText(item.mime_type, `${path}.mime_type`)
  const metadata = item.metadata ?? null
  if (metadata !== null && metadata.text[0] !== '{')
    throw invalidParams(`${path}.metadata`, 'is no object; give an object or null')
  const content =
    `{"content":${packContent(item.content, `${path}.content`)},"mime_type":${JSON.stringify(item.mime_type)}` +
    `,"metadata":${metadata === null ? 'null' : canonicalJson(metadata.text, `${path}.metadata`).text}}`
  const size = Buffer.byteLength(content)
  if (size > maxBytes) {
    throw new MnemError(
      'too_large',
      `${path} has ${size} bytes; an item has at most ${maxBytes}: store it in parts.`,
      {
        path,
        limit: maxBytes,
        actual: size,
      },
    )
  }
  checkProvenance(item.provenance, `${path}.provenance`)
  if (item.event_time !== undefined && !Number.isSafeInteger(item.event_time)) {
    throw invalidParams(`${path}.event_time`, 'is no whole number of milliseconds')
  }
  return { content, provenance: item.provenance, event_time: item.event_time }
}

function packContent(content: Content, path: string): string {
  switch (content.type) {
    case 'text':
      checkText(content.text, `${path}.text`)
      return JSON.stringify(content.text)
    case 'json': {
      const text = canonicalJson(content.json.text, `${path}.json`).text
      if (text[0] !== '{') throw invalidParams(`${path}.json`, 'is no object; wrap the value in one')
      return isMistakable(text) ? `{"${WRAPPED_KEY}":${text}}` : text
    }
    case 'bytes':
      checkBase64(content.base64, `${path}.base64`)
      return `{"${BYTES_KEY}":"${content.base64}"}`
    case 'image':
      checkBase64(content.base64, `${path}.base64`)
      if (!content.base64.startsWith(PNG_BASE64))
        throw invalidParams(`${path}.base64`, 'is no PNG file; convert the image')
      return `{"${IMAGE_KEY}":"${content.base64}"}`
  }
}

/** Whether an object would be read as something else: it has a key that starts with one of ours. */
function isMistakable(text: string): boolean {
  if (!text.includes('"__')) return false
  return members(text).some(({ key }) => RESERVED.some((reserved) => key.startsWith(reserved)))
}

function checkBase64(base64: string, path: string): void {
  if (Buffer.from(base64, 'base64').toString('base64') !== base64) {
    throw invalidParams(
      path,
      'is not base64 in its standard form (RFC 4648 section 4, padded, no white space)',
    )
  }
}

function checkProvenance(provenance: Provenance | undefined, path: string): void {
  for (const [field, value] of setProvenance(provenance) ?? []) checkText(value, `${path}.${field}`)
}

/** The JSON of what a change set: an item, or of one whose content was purged that it was. */
export function renderNode(
  prefix: string,
  number: number,
  change: { kind: 'redacted' } | { kind: 'item' | 'node'; fields: NodeFields },
): JsonText {
  if (change.kind !== 'redacted') return renderItem(prefix, number, change.fields)
  return new JsonText(`{"id":${JSON.stringify(itemId(prefix, number))},"redacted":true}`)
}

/** Whether a text stands in a content's strings or keys; bytes and images hold none. */
export function contentContains(fields: NodeFields, text: string): boolean {
  // Within JSON a text stands with its escapes: most items are told apart by that alone.
  if (!fields.content.includes(JSON.stringify(text).slice(1, -1))) return false
  const member = members(fields.content).find(({ key }) => key === 'content')
  if (member === undefined) return false
  return holdsText(JSON.parse(unpackContent(fields.content.slice(member.start, member.end))), text)
}

function holdsText(content: { type: string; text?: string; json?: unknown }, text: string): boolean {
  if (content.type === 'text') return content.text?.includes(text) === true
  const inside = (value: unknown): boolean => {
    if (typeof value === 'string') return value.includes(text)
    if (typeof value !== 'object' || value === null) return false
    return Object.entries(value).some(([key, inner]) => key.includes(text) || inside(inner))
  }
  return inside(content.json)
}

/** An item's JSON as callers get it: `{"id", "content": Content, "mime_type", "metadata"?, "provenance"?, "event_time"?}`. */
export function renderItem(prefix: string, number: number, fields: NodeFields): JsonText {
  const text = fields.content
  const parts = new Map<string, Member>()
  for (const member of members(text)) parts.set(member.key, member)
  const part = (key: string) => {
    const member = parts.get(key)
    return member === undefined ? undefined : text.slice(member.start, member.end)
  }
  let out = `{"id":${JSON.stringify(itemId(prefix, number))},"content":${unpackContent(part('content') ?? text)}`
  out += `,"mime_type":${part('mime_type') ?? '"application/json"'}`
  const metadata = part('metadata')
  if (metadata !== undefined && metadata !== 'null') out += `,"metadata":${metadata}`
  const provenance = setProvenance(fields.provenance)
  if (provenance !== undefined) out += `,"provenance":${stringifyJson(Object.fromEntries(provenance))}`
  if (fields.event_time !== undefined) out += `,"event_time":${fields.event_time}`
  return new JsonText(`${out}}`)
}

function unpackContent(text: string): string {
  if (text[0] === '"') return `{"type":"text","text":${text}}`
  if (text.startsWith('{"__')) {
    const [only, second] = members(text)
    if (only !== undefined && second === undefined) {
      const value = text.slice(only.start, only.end)
      if (only.key === BYTES_KEY && value[0] === '"') return `{"type":"bytes","base64":${value}}`
      if (only.key === IMAGE_KEY && value[0] === '"') return `{"type":"image","base64":${value}}`
      if (only.key === WRAPPED_KEY && value[0] === '{') return `{"type":"json","json":${value}}`
    }
  }
  return `{"type":"json","json":${text}}`
}
