import { backwards } from './chain.ts'
import type { EngineReader, MemoryRecord, Row } from './engine/engine.ts'
import { invalidParams, MnemError } from './errors.ts'
import { toHex } from './id.ts'
import { commitKeySeq, commitRange } from './keys.ts'
import { decodeRecord } from './record.ts'
import type { At } from './types.ts'

const ID_PREFIX = /^[0-9a-f]{4,64}$/

/** The line that a memory's first commit begins. */
const FIRST_LINE = 1

/** How many candidates an ambiguous prefix names. */
const CANDIDATES = 10

/** The row that a branch points at; undefined for the default branch of a memory without a commit. */
export async function headOf(
  reader: EngineReader,
  memory: MemoryRecord,
  branch = memory.default_branch,
): Promise<Row | undefined> {
  const seq = await reader.ref(memory.id, branch)
  if (seq !== undefined) return (await reader.rows(memory.id, [seq]))[0]
  if (branch !== memory.default_branch) throw noSuchBranch(memory.name, branch)
  // No head yet means no commit yet: a ref that got lost must not pass for an empty memory.
  const [root] = await reader.line(memory.id, FIRST_LINE, 0, 0)
  if (root === undefined) return undefined
  throw new MnemError(
    'corrupt_store',
    `Memory "${memory.name}" has commits and no head. Restore the store from a backup; nothing was changed.`,
    {
      object: `ref ${branch}`,
      problem: 'missing',
    },
  )
}

export function noSuchBranch(memory: string, branch: string): MnemError {
  return new MnemError(
    'not_found',
    `Memory "${memory}" has no branch ${JSON.stringify(branch)}; leave it out for the default branch.`,
  )
}

/**
 * The row that `at` names: a branch, an id prefix, or the newest commit on the branch's first-parent chain that is not
 * later than a time. Undefined when nothing was there yet; throws `invalid_ref` for a commit-ish that names nothing.
 */
export async function resolve(
  reader: EngineReader,
  memory: MemoryRecord,
  branch?: string,
  at?: At,
): Promise<Row | undefined> {
  if (typeof at === 'string') return commitish(reader, memory, at)
  const head = await headOf(reader, memory, branch)
  if (at === undefined || head === undefined) return head
  if (!Number.isSafeInteger(at)) throw invalidParams('at', 'is no whole number of milliseconds')
  for await (const row of backwards(reader, head)) if (decodeRecord(row.body).time <= at) return row
  return undefined
}

async function commitish(reader: EngineReader, memory: MemoryRecord, name: string): Promise<Row> {
  const branch = await reader.ref(memory.id, name)
  if (branch !== undefined) return (await reader.rows(memory.id, [branch]))[0] as Row
  if (!ID_PREFIX.test(name))
    throw unknownCommit(
      memory.name,
      name,
      'a commit is named by a branch or by 4 to 64 lowercase hex digits of its id',
    )
  const [from, to] = commitRange(name)
  const found = await reader.entries(memory.id, from, to, { limit: 1000 })
  const rows =
    found.length === 0
      ? []
      : await reader.rows(
          memory.id,
          found.map(({ key }) => commitKeySeq(key)),
        )
  const matches = rows.filter((row) => toHex(row.id).startsWith(name))
  if (matches.length === 1) return matches[0] as Row
  if (matches.length === 0)
    throw unknownCommit(memory.name, name, 'no commit has an id that starts so; `log` lists them')
  const candidates = matches.slice(0, CANDIDATES).map((row) => toHex(row.id))
  throw new MnemError(
    'invalid_ref',
    `${name} names ${matches.length} commits of memory "${memory.name}"; give more digits.`,
    { candidates },
  )
}

export function unknownCommit(memory: string, name: string, reason: string): MnemError {
  return new MnemError(
    'invalid_ref',
    `Memory "${memory}" has no commit ${JSON.stringify(name)}: ${reason}.`,
    { candidates: [] },
  )
}
