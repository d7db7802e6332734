import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { checkMemoryName, MnemError } from '@mnem/core'
import type { Verb } from '@mnem/protocol'
import { LockedError, withFileLock } from '../file-lock.ts'
import { UsageError } from '../usage.ts'
import type { MemoryRule } from './access.ts'

export const VERBS: readonly Verb[] = ['read', 'write', 'admin']

/** One token as the file keeps it. */
export interface TokenEntry {
  name: string
  /** SHA-256 of the token, 64 hex digits. The token has 256 random bits, so nothing slower is needed. */
  sha256: string
  memories: readonly MemoryRule[]
  verbs: readonly Verb[]
  /** Who commits with this token, whatever the client says. */
  author?: string
  /** When it was made, ISO 8601. */
  created?: string
}

const LOCK_MS = 5000
const KNOWN = new Set(['name', 'sha256', 'memories', 'verbs', 'author', 'created'])

/** Read the tokens of a file. Throws `UsageError`, which never quotes what stands in it. */
export function readTokenFile(file: string): TokenEntry[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const fix =
      code === 'ENOENT'
        ? `make it with "mnem-sidecar token new --file ${file} …"`
        : `let user ${process.geteuid?.() ?? '?'} read it`
    throw new UsageError(`The token file ${file} can't be read (${code}); ${fix}.`)
  }
  return parseTokenFile(text, file)
}

/** Change the tokens of a file, made where it is missing: all of the change, or nothing. Throws `UsageError`. */
export async function changeTokenFile(
  file: string,
  change: (entries: TokenEntry[]) => TokenEntry[],
): Promise<void> {
  try {
    await withFileLock(`${file}.lock`, LOCK_MS, async () => {
      const mode = statSync(file, { throwIfNoEntry: false })?.mode
      const entries = mode === undefined ? [] : readTokenFile(file)
      replace(file, `${JSON.stringify({ tokens: change(entries) }, null, 2)}\n`, (mode ?? 0o600) & 0o777)
    })
  } catch (error) {
    if (error instanceof UsageError) throw error
    const why = error instanceof LockedError ? 'another process is changing it' : (error as Error).message
    throw new UsageError(
      `The token file ${file} can't be written (${why}); see that its directory exists and that this user may write there.`,
    )
  }
}

/** Write beside and rename, so that a reader finds the old file or the new one, also after a power cut. */
function replace(file: string, text: string, mode: number): void {
  const beside = `${file}.${process.pid}.new`
  try {
    const fd = openSync(beside, 'wx', mode)
    try {
      writeSync(fd, text)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(beside, file)
  } catch (error) {
    rmSync(beside, { force: true })
    throw error
  }
}

/** Read the text of a token file. Throws `UsageError` naming the entry and the member that is wrong. */
export function parseTokenFile(text: string, file: string): TokenEntry[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new UsageError(`The token file ${file} is no JSON; correct it, or make it anew.`)
  }
  const { tokens } = (value ?? {}) as { tokens?: unknown }
  if (!Array.isArray(tokens))
    throw new UsageError(`The token file ${file} must hold an object with a list "tokens".`)
  const names = new Set<string>()
  return tokens.map((entry, index) => {
    const where = `${file}: tokens[${index}]`
    const checked = checkEntry(entry, where)
    if (names.has(checked.name)) throw new UsageError(`${where} has the name of another token; rename one.`)
    names.add(checked.name)
    return checked
  })
}

function checkEntry(value: unknown, where: string): TokenEntry {
  if (typeof value !== 'object' || value === null) throw new UsageError(`${where} must be an object.`)
  const entry = value as Record<string, unknown>
  const unknown = Object.keys(entry).find((key) => !KNOWN.has(key))
  if (unknown !== undefined)
    throw new UsageError(`${where} has a member that is not known; it has ${Array.from(KNOWN).join(', ')}.`)
  const { name, sha256, memories, verbs, author, created } = entry
  if (typeof name !== 'string' || name === '') throw new UsageError(`${where}.name must be a text.`)
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256))
    throw new UsageError(`${where}.sha256 must be 64 hex digits.`)
  return {
    name,
    sha256,
    memories: checkRules(memories, where),
    verbs: checkVerbs(verbs, where),
    ...(author === undefined ? {} : { author: checkAuthor(author, `${where}.author`) }),
    ...(typeof created === 'string' ? { created } : {}),
  }
}

function checkRules(value: unknown, where: string): MemoryRule[] {
  if (!Array.isArray(value)) throw new UsageError(`${where}.memories must be a list.`)
  for (const rule of value) checkRule(rule, `${where}.memories`)
  return value
}

/** Check a memory's name or prefix. Throws `UsageError`. */
export function checkRule(rule: unknown, where: string): MemoryRule {
  if (rule === '*') return rule
  try {
    if (typeof rule !== 'string') throw new UsageError('')
    checkMemoryName(rule.endsWith('*') ? rule.slice(0, -1) : rule)
    return rule
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof MnemError)) throw error
    throw new UsageError(
      `${where} has a value that is no memory's name; give a name, a prefix with * at its end, or * alone.`,
    )
  }
}

function checkVerbs(value: unknown, where: string): Verb[] {
  const isList = Array.isArray(value) && value.every((verb) => VERBS.includes(verb))
  if (!isList) throw new UsageError(`${where}.verbs must be a list of ${VERBS.join(', ')}.`)
  return value
}

/** Check an author. Throws `UsageError`. */
export function checkAuthor(value: unknown, where: string): string {
  if (typeof value === 'string' && value !== '' && value.isWellFormed()) return value
  throw new UsageError(`${where} must be a text.`)
}
