import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { MnemError } from '../errors.ts'

/** The files of a store directory; the two beside the database come and go with its connections. */
const FILES = ['mnem.db', 'mnem.db-wal', 'mnem.db-shm'] as const

/**
 * See that this process may read and write the store directory and each file in it, without opening any. SQLite would
 * say "unable to open" or "readonly" without a word of which file, and only at the first write.
 *
 * Throws `MnemError` (`store_io`) that names the path, its owner, and the fix.
 */
export function checkStoreAccess(dir: string): void {
  check(dir, constants.R_OK | constants.W_OK | constants.X_OK, dir)
  for (const name of FILES) {
    const file = join(dir, name)
    if (existsSync(file)) check(file, constants.R_OK | constants.W_OK, dir)
  }
}

/**
 * Make a directory, and those above it that are missing, for this user alone. Node's own recursive way never ends where
 * the system says of a name in a directory that is there that it is not, as below /proc.
 *
 * Throws what the system said.
 */
export function makeDirectory(dir: string): void {
  try {
    mkdirSync(dir, { mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && statSync(dir).isDirectory()) return
    if (code !== 'ENOENT' || existsSync(dirname(dir))) throw error
    makeDirectory(dirname(dir))
    mkdirSync(dir, { mode: 0o700 })
  }
}

function check(path: string, mode: number, dir: string): void {
  try {
    accessSync(path, mode)
  } catch (error) {
    throw storeUnusable(dir, error, path)
  }
}

const WHY: Record<string, string> = {
  EEXIST: 'there is a file of that name',
  ENOTDIR: 'a part of the path is a file',
  ENOENT: 'there can be no such directory',
  EROFS: 'it is on a read-only file system; mount it writable',
  ENOSPC: 'the disk is full',
  EISDIR: 'mnem.db in it is a directory',
}

/** The error for a store directory that can be neither used nor made, because of `path` in it or on the way to it. */
export function storeUnusable(dir: string, error: unknown, path = dir): MnemError {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown'
  const denied = code === 'EACCES' || code === 'EPERM'
  const message = denied
    ? `The store directory ${dir} can't be used: ${describeOwner(path, dir)}`
    : `The store directory ${dir} can be neither used nor made: ${WHY[code] ?? code}. Give a directory that this user may write to.`
  return new MnemError('store_io', message, { reason: code }, { cause: error })
}

/** Who owns what stands in the way, who we are, and what to do about it. */
function describeOwner(path: string, dir: string): string {
  const place = nearest(path)
  const { uid, gid, mode } = statSync(place)
  const own = `${process.geteuid?.() ?? '?'}:${process.getegid?.() ?? '?'}`
  const whose = `${place} belongs to user ${uid}:${gid} (mode ${(mode & 0o7777).toString(8).padStart(4, '0')}), and this process runs as ${own} and may not write there.`
  const fix = existsSync(dir)
    ? `Give it the files (chown -R ${own} ${dir}), or run it as their owner.`
    : `Make the directory for it (mkdir -p ${dir} && chown ${own} ${dir}), or give another one.`
  return `${whose} ${fix}`
}

/** The path itself, or the directory above it that exists and can be looked at. */
function nearest(path: string): string {
  for (let place = path; ; place = dirname(place)) {
    try {
      statSync(place)
      return place
    } catch {
      if (dirname(place) === place) return place
    }
  }
}
