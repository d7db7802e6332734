import { MnemError } from './errors.ts'
import { FORMAT, FORMAT_VERSION } from './export.ts'
import { fromHex } from './id.ts'
import { canonicalJson, members } from './json.ts'
import { checkText, counterId, itemNumber } from './names.ts'
import type { NodeFields } from './object.ts'
import type { PurgeNote } from './purge.ts'
import type { Change } from './record.ts'

/** One line of an export, read and checked as far as it can be by itself. */

export interface Header {
  prefix: string
  default_branch: string
  /** Branch to commit id. */
  refs: ReadonlyMap<string, string>
  /** Who purged what, by the object's id as hex. */
  redacted: ReadonlyMap<string, PurgeNote>
}

export interface CommitLine {
  id: string
  parents: string[]
  author: string
  message: string
  time: number
  changes: Change[]
}

export interface Footer {
  commits: number
  changes: number
}

const ID = /^[0-9a-f]{64}$/

/** The error for a line that is not what an export has there. Nothing of what it holds is in it. */
export function badLine(line: number, problem: string, object = `line ${line}`): MnemError {
  return new MnemError('corrupt_store', `Line ${line} of the export ${problem}; nothing was imported.`, {
    object,
    problem,
  })
}

/** Members of an object with their texts, in their order. */
type Texts = ReadonlyMap<string, string>

/** The members of a line's object. Throws where it is no JSON object, or names a member twice. */
function read(text: string, line: number): Texts {
  try {
    JSON.parse(text)
  } catch {
    throw badLine(line, 'is no JSON')
  }
  return objectOf(text, line, 'is no JSON object')
}

function objectOf(text: string, line: number, otherwise: string): Texts {
  if (!text.trimStart().startsWith('{')) throw badLine(line, otherwise)
  const found = new Map<string, string>()
  for (const { key, start, end } of members(text)) {
    if (found.has(key)) throw badLine(line, 'names a member twice')
    found.set(key, text.slice(start, end))
  }
  return found
}

function only(texts: Texts, line: number, names: readonly string[]): void {
  for (const name of texts.keys())
    if (!names.includes(name)) throw badLine(line, 'has a member that this version does not know')
}

function stringOf(texts: Texts, name: string, line: number): string {
  const value: unknown = JSON.parse(texts.get(name) ?? 'null')
  if (typeof value !== 'string' || !value.isWellFormed()) throw badLine(line, `has no text \`${name}\``)
  return value
}

function wholeOf(texts: Texts, name: string, line: number): number {
  const text = texts.get(name) ?? ''
  if (!/^(0|-?[1-9]\d*)$/.test(text) || !Number.isSafeInteger(Number(text)))
    throw badLine(line, `has no whole number \`${name}\``)
  return Number(text)
}

export function readHeader(text: string, line: number): Header {
  const texts = read(text, line)
  if (texts.get('format') !== JSON.stringify(FORMAT))
    throw badLine(line, `is no header of an export (format "${FORMAT}")`)
  if (wholeOf(texts, 'version', line) !== FORMAT_VERSION)
    throw badLine(line, `is of another version than ${FORMAT_VERSION}; update mnem-sidecar`)
  if (texts.get('hash_algo') !== '"blake3"') throw badLine(line, 'names another hash than blake3')
  only(texts, line, ['format', 'version', 'hash_algo', 'prefix', 'default_branch', 'refs', 'redacted'])
  const refs = new Map<string, string>()
  for (const [branch, id] of objectOf(texts.get('refs') ?? '', line, 'has no object `refs`')) {
    const commit: unknown = JSON.parse(id)
    if (typeof commit !== 'string' || !ID.test(commit) || branch === '' || !branch.isWellFormed())
      throw badLine(line, 'has a branch that names no commit')
    refs.set(branch, commit)
  }
  const prefix = stringOf(texts, 'prefix', line)
  checkText(prefix, 'prefix')
  const redacted = readRedacted(texts.get('redacted'), line)
  return { prefix, default_branch: stringOf(texts, 'default_branch', line), refs, redacted }
}

function readRedacted(text: string | undefined, line: number): Map<string, PurgeNote> {
  const notes = new Map<string, PurgeNote>()
  const listed: unknown = JSON.parse(text ?? '[]')
  if (!Array.isArray(listed)) throw badLine(line, 'has no list `redacted`')
  for (const one of listed) {
    const texts = objectOf(
      JSON.stringify(one),
      line,
      'names a purged object by something else than an object',
    )
    only(texts, line, ['object', 'id', 'author', 'time', 'reason'])
    const object = stringOf(texts, 'object', line)
    if (!ID.test(object)) throw badLine(line, 'names a purged object without its id')
    notes.set(object, {
      author: stringOf(texts, 'author', line),
      time: wholeOf(texts, 'time', line),
      reason: stringOf(texts, 'reason', line),
    })
  }
  return notes
}

/** A commit, or the last line, which has the counts. */
export function readLine(text: string, line: number, prefix: string): CommitLine | Footer {
  const texts = read(text, line)
  if (texts.has('commits')) {
    only(texts, line, ['commits', 'changes'])
    return { commits: wholeOf(texts, 'commits', line), changes: wholeOf(texts, 'changes', line) }
  }
  only(texts, line, ['id', 'parents', 'author', 'message', 'time', 'changes'])
  const id = stringOf(texts, 'id', line)
  const parents: unknown = JSON.parse(texts.get('parents') ?? 'null')
  if (!ID.test(id)) throw badLine(line, 'has no commit id')
  if (!Array.isArray(parents) || parents.length > 2 || !parents.every((parent) => ID.test(String(parent))))
    throw badLine(line, 'has parents that are no list of up to two commit ids', id)
  return {
    id,
    parents,
    author: stringOf(texts, 'author', line),
    message: stringOf(texts, 'message', line),
    time: wholeOf(texts, 'time', line),
    changes: readChanges(texts.get('changes') ?? '', line, prefix),
  }
}

function readChanges(text: string, line: number, prefix: string): Change[] {
  const changes: Change[] = []
  for (const [id, value] of objectOf(text, line, 'has no object `changes`')) {
    if (!id.isWellFormed()) throw badLine(line, 'has a node id with half of a surrogate pair')
    const change = value === 'null' ? removal(id, prefix) : setting(id, value, line, prefix)
    const last = changes.at(-1)
    const continues =
      change.kind === 'remove' && last?.kind === 'remove' && last.from + last.count === change.from
    if (continues) last.count++
    else changes.push(change)
  }
  return changes
}

function removal(id: string, prefix: string): Change {
  if (id === counterId(prefix)) return { kind: 'remove_counter' }
  const number = itemNumber(prefix, id)
  return number === undefined ? { kind: 'remove_node', id } : { kind: 'remove', from: number, count: 1 }
}

function setting(id: string, value: string, line: number, prefix: string): Change {
  const texts = objectOf(value, line, `has something else than a node at ${JSON.stringify(id)}`)
  if (texts.has('redacted')) return redaction(id, texts, line, prefix)
  only(texts, line, ['content', 'content_kind', 'provenance', 'event_time'])
  const content = texts.get('content')
  if (content === undefined) throw badLine(line, `has a node without content at ${JSON.stringify(id)}`)
  if (id === counterId(prefix)) {
    if (texts.size > 1) throw badLine(line, 'has a counter that is more than a number')
    return { kind: 'counter', value: wholeOf(texts, 'content', line) }
  }
  const fields = fieldsOf(texts, content, line)
  const number = itemNumber(prefix, id)
  return number === undefined ? { kind: 'node', id, fields } : { kind: 'item', number, fields }
}

function redaction(id: string, texts: Texts, line: number, prefix: string): Change {
  only(texts, line, ['redacted'])
  const object = stringOf(texts, 'redacted', line)
  const number = itemNumber(prefix, id)
  if (!ID.test(object) || number === undefined)
    throw badLine(line, 'has a purged node that is no item, or has no object id')
  return { kind: 'redacted', number, object: fromHex(object) }
}

const PROVENANCE = ['agent_step', 'observation', 'tool_call', 'source', 'note']

function fieldsOf(texts: Texts, content: string, line: number): NodeFields {
  const fields: NodeFields = { content: canonical(content, line) }
  if (texts.has('content_kind')) fields.content_kind = stringOf(texts, 'content_kind', line)
  const provenance = texts.get('provenance')
  if (provenance !== undefined) {
    const set = objectOf(provenance, line, 'has provenance that is no object')
    only(set, line, PROVENANCE)
    fields.provenance = Object.fromEntries(
      Array.from(set.keys(), (name) => [name, stringOf(set, name, line)]),
    )
  }
  if (texts.has('event_time')) fields.event_time = wholeOf(texts, 'event_time', line)
  return fields
}

function canonical(content: string, line: number): string {
  try {
    return canonicalJson(content).text
  } catch (error) {
    if (!(error instanceof MnemError)) throw error
    throw badLine(line, `has content that can’t be kept (${error.data.reason ?? 'no JSON'})`)
  }
}

/** Whether a line is the last one. */
export function isFooter(line: CommitLine | Footer): line is Footer {
  return 'commits' in line
}
