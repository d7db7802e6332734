import { MnemError } from '../errors.ts'

const BUSY = 5
const LOCKED = 6

interface SqliteError extends Error {
  errcode: number
  errstr: string
}

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === 'ERR_SQLITE_ERROR'
}

/** Whether another connection holds the lock, so that the same call may succeed a moment later. */
export function isBusy(error: unknown): boolean {
  return isSqliteError(error) && ((error.errcode & 0xff) === BUSY || (error.errcode & 0xff) === LOCKED)
}

/** What SQLite says by a result rather than an error: something is in the way, try again. */
export function busy(): Error {
  return Object.assign(new Error('database is locked'), {
    code: 'ERR_SQLITE_ERROR',
    errcode: BUSY,
    errstr: '',
  })
}

const REASONS: Record<number, readonly [reason: string, todo: string]> = {
  8: ['read_only', 'the store can only be read; give this user write permission or mount it writable'],
  10: ['io_error', 'the disk reported an error; check it and its messages'],
  13: ['disk_full', 'the disk is full; free some space and try again'],
  14: ['cannot_open', 'a file of the store cannot be opened; check permissions and open-file limits'],
}

/**
 * Codes that can only mean damage. Our statements are fixed and what they insert is new, so that a plain SQL error or a
 * constraint says that the tables are not what we made.
 */
const DAMAGE: ReadonlySet<number> = new Set([1, 11, 19, 20, 26])

/** What an SQLite failure means to a caller; other errors pass through. */
export function translate(error: unknown): unknown {
  if (error instanceof Error && (error as NodeJS.ErrnoException).code === 'ERR_OUT_OF_RANGE') {
    return damage('a number out of range', error)
  }
  if (!isSqliteError(error)) return error
  const primary = error.errcode & 0xff
  if (DAMAGE.has(primary)) return damage(error.errstr, error)
  const known = REASONS[primary]
  if (known === undefined) return error
  const message = `The store was not written: ${known[1]} (SQLite ${error.errcode}).`
  return new MnemError('store_io', message, { reason: known[0] }, { cause: error })
}

function damage(problem: string, cause: Error): MnemError {
  const message = `SQLite finds the store damaged (${problem}). Restore it from a backup; nothing was changed.`
  return new MnemError('corrupt_store', message, { object: 'database', problem }, { cause })
}
