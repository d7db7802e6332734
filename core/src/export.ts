import { breathe } from './breathe.ts'
import type { EngineReader, MemoryRecord, Row } from './engine/engine.ts'
import { invalidParams } from './errors.ts'
import { toHex } from './id.ts'
import { stringifyJson } from './json.ts'
import { counterId, itemId } from './names.ts'
import { NOTE, type NodeFields, setProvenance } from './object.ts'
import { purgedOf } from './purge.ts'
import { ascending } from './reach.ts'
import { type Change, decodeRecord } from './record.ts'
import type { ExportPart } from './types.ts'

export const FORMAT = 'mnem-changes'
export const FORMAT_VERSION = 1

/** Characters of one part, but for a commit that is larger by itself. */
const PART = 4 * 1024 * 1024

/**
 * A part of a memory's export as JSON Lines (format.md, "changes"): a header, each commit behind its parents with what it
 * changed against the first of them, and a last line with the counts. What comes next is told by a cursor alone: rows
 * never change, so a part is the same whenever it is asked for, and all of them together are one moment's history.
 */
export async function exportPart(
  reader: EngineReader,
  memory: MemoryRecord,
  cursor: string | undefined,
): Promise<ExportPart> {
  const start = cursor === undefined ? await begin(reader, memory) : readCursor(cursor)
  const lines: string[] = start.header === undefined ? [] : [start.header]
  let { last, commits, changes } = start
  let size = 0
  for await (const row of ascending(reader, memory.id, last, start.newest)) {
    if (size >= PART) return { text: lines.join(''), next: showCursor({ ...start, last, commits, changes }) }
    const record = decodeRecord(row.body)
    const line = await commitLine(reader, memory.prefix, row)
    lines.push(line)
    size += line.length
    last = row.seq
    commits++
    changes += countChanges(record.changes)
    await breathe()
  }
  lines.push(`${JSON.stringify({ commits, changes })}\n`)
  return { text: lines.join('') }
}

interface Cursor {
  /** The last row of the export, and the last one that was told. */
  newest: number
  last: number
  commits: number
  changes: number
}

async function begin(reader: EngineReader, memory: MemoryRecord): Promise<Cursor & { header: string }> {
  const refs = await reader.refs(memory.id)
  const rows = await reader.rows(
    memory.id,
    refs.map(({ seq }) => seq),
  )
  const heads = Object.fromEntries(refs.map(({ branch }, index) => [branch, toHex((rows[index] as Row).id)]))
  const header = {
    format: FORMAT,
    version: FORMAT_VERSION,
    hash_algo: 'blake3',
    prefix: memory.prefix,
    default_branch: memory.default_branch,
    refs: heads,
    redacted: await purgedOf(reader, memory),
  }
  const newest = refs.reduce((highest, { seq }) => Math.max(highest, seq), 0)
  return { header: `${JSON.stringify(header)}\n`, newest, last: 0, commits: 0, changes: 0 }
}

function showCursor({ newest, last, commits, changes }: Cursor): string {
  return [newest, last, commits, changes].join('.')
}

function readCursor(text: string): Cursor & { header: undefined } {
  const numbers = text.split('.').map(Number)
  const [newest, last, commits, changes] = numbers
  if (numbers.length !== 4 || numbers.some((number) => !Number.isSafeInteger(number) || number < 0))
    throw invalidParams('after', 'is no place in an export; give the `next` of the part before')
  return {
    header: undefined,
    newest: newest as number,
    last: last as number,
    commits: commits as number,
    changes: changes as number,
  }
}

async function commitLine(reader: EngineReader, prefix: string, row: Row): Promise<string> {
  const { author, message, time, changes } = decodeRecord(row.body)
  const parents = row.parents.length === 0 ? [] : await reader.rows(row.memory, row.parents)
  const head = JSON.stringify({
    id: toHex(row.id),
    parents: parents.map((parent) => toHex(parent.id)),
    author,
    message,
    time,
  })
  const nodes = changes.flatMap((change) => showChange(prefix, change))
  return `${head.slice(0, -1)},"changes":{${nodes.join(',')}}}\n`
}

function showChange(prefix: string, change: Change): string[] {
  const member = (id: string, value: string) => `${JSON.stringify(id)}:${value}`
  switch (change.kind) {
    case 'item':
      return [member(itemId(prefix, change.number), showFields(change.fields))]
    case 'node':
      return [member(change.id, showFields(change.fields))]
    case 'counter':
      return [member(counterId(prefix), `{"content":${change.value}}`)]
    case 'remove':
      return Array.from({ length: change.count }, (_, i) => member(itemId(prefix, change.from + i), 'null'))
    case 'remove_node':
      return [member(change.id, 'null')]
    case 'remove_counter':
      return [member(counterId(prefix), 'null')]
    case 'redacted':
      return [member(itemId(prefix, change.number), `{"redacted":"${toHex(change.object)}"}`)]
  }
}

/** A node's fields, its content as it is kept. */
function showFields({ content, content_kind, provenance, event_time }: NodeFields): string {
  let text = `{"content":${content}`
  if (content_kind !== undefined && content_kind !== NOTE)
    text += `,"content_kind":${JSON.stringify(content_kind)}`
  const set = setProvenance(provenance)
  if (set !== undefined) text += `,"provenance":${stringifyJson(Object.fromEntries(set))}`
  if (event_time !== undefined) text += `,"event_time":${event_time}`
  return `${text}}`
}

function countChanges(changes: readonly Change[]): number {
  return changes.reduce((sum, change) => sum + (change.kind === 'remove' ? change.count : 1), 0)
}
