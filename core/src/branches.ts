import type { EngineReader, EngineWriter, MemoryRecord } from './engine/engine.ts'
import { invalidParams, MnemError } from './errors.ts'
import { toHex } from './id.ts'
import { checkText, NAME_BYTES } from './names.ts'
import { noSuchBranch, resolve, unknownCommit } from './refs.ts'
import type { At, BranchList } from './types.ts'

/** The reference's rule (merge.md), with a bound, and without what looks like a whole commit id. */
const ALLOWED = /^[\p{Alphabetic}\p{N}\-_./]+$/u
const WHOLE_ID = /^[0-9a-f]{64}$/

/** Check the name of a branch that is to be made. Throws `invalid_params`. */
export function checkBranchName(name: string, path = 'name'): void {
  checkText(name, path)
  const bytes = Buffer.byteLength(name)
  if (bytes > NAME_BYTES) throw invalidParams(path, `has ${bytes} bytes; a name has at most ${NAME_BYTES}`)
  if (!ALLOWED.test(name))
    throw invalidParams(path, 'must have letters, digits, "-", "_", "." and "/" only, and at least one')
  if (/^[./]|[./]$/.test(name)) throw invalidParams(path, 'must not begin or end with "." or "/"')
  if (name.includes('..')) throw invalidParams(path, 'must not have ".." in it')
  if (name === 'HEAD') throw invalidParams(path, 'is a word of its own; choose another name')
  if (WHOLE_ID.test(name)) throw invalidParams(path, 'looks like the id of a commit; choose another name')
}

/** The branches of a memory, by name, with their heads. */
export async function listBranches(reader: EngineReader, memory: MemoryRecord): Promise<BranchList> {
  const refs = await reader.refs(memory.id)
  const rows = await reader.rows(
    memory.id,
    refs.map(({ seq }) => seq),
  )
  return {
    branches: refs.map(({ branch }, index) => ({
      name: branch,
      commit: toHex((rows[index] as { id: Uint8Array }).id),
      default: branch === memory.default_branch,
    })),
  }
}

/** Make a branch at the head or at `at`. */
export async function createBranch(
  writer: EngineWriter,
  memory: MemoryRecord,
  name: string,
  at: At | undefined,
): Promise<void> {
  const row = await resolve(writer, memory, undefined, at)
  if (row === undefined)
    throw unknownCommit(memory.name, String(at ?? memory.default_branch), 'there is no commit there yet')
  if (await writer.moveRef(memory.id, name, undefined, row.seq)) return
  throw new MnemError(
    'conflict',
    `Memory "${memory.name}" has a branch ${JSON.stringify(name)} already; choose another name, or delete that one.`,
    { reason: 'branch' },
  )
}

/** Make another branch the default one. */
export async function switchBranch(
  writer: EngineWriter,
  memory: MemoryRecord,
  branch: string,
): Promise<void> {
  if ((await writer.ref(memory.id, branch)) === undefined) throw noSuchBranch(memory.name, branch)
  if (branch !== memory.default_branch) await writer.setDefaultBranch(memory, branch)
}

/** Delete a branch; its commits stay, and are found by their ids. */
export async function deleteBranch(writer: EngineWriter, memory: MemoryRecord, name: string): Promise<void> {
  if (name === memory.default_branch)
    throw new MnemError(
      'conflict',
      `${JSON.stringify(name)} is the default branch of memory "${memory.name}"; switch to another one first.`,
      { reason: 'default_branch' },
    )
  if (!(await writer.deleteRef(memory.id, name))) throw noSuchBranch(memory.name, name)
}
