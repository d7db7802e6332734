import { open } from 'node:fs/promises'
import type { DatabaseSync } from 'node:sqlite'
import { MnemError } from '../errors.ts'
import { busy } from './sqlite-errors.ts'

/** Bytes of the file that are looked through at once. */
const PIECE = 1024 * 1024
/** With more traces than this, looking costs more than writing the file anew. */
const TRACES = 64

/** Runs work on the writing connection, again while another process is in its way. */
type Execute = (work: (db: DatabaseSync) => void) => Promise<void>

/**
 * Empty the WAL, which holds pages as they were, and look through the database for what `secure_delete` does not reach:
 * a page that was rebuilt keeps copies of cells that moved to another page. Where there is any, the database is written
 * anew. Throws `MnemError` `busy` where another process reads an older state of the store all the while.
 */
export async function eraseTraces(
  execute: Execute,
  file: string,
  traces: readonly Uint8Array[] | undefined,
): Promise<void> {
  await emptyWal(execute)
  if (traces !== undefined && traces.length <= TRACES && !(await holdsAny(file, traces))) return
  await execute((db) => db.exec('VACUUM'))
  await emptyWal(execute)
}

async function emptyWal(execute: Execute): Promise<void> {
  try {
    await execute((db) => {
      const state = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
      if (state.busy !== 0) throw busy()
    })
  } catch (error) {
    if (!(error instanceof MnemError) || error.kind !== 'busy') throw error
    const message =
      'The content is purged, but another process still reads an older state of the store, so its bytes are in the write-ahead log yet; purge again when that process is done.'
    throw new MnemError('busy', message, { reason: 'erase' }, { cause: error })
  }
}

async function holdsAny(file: string, traces: readonly Uint8Array[]): Promise<boolean> {
  const overlap = Math.max(...traces.map(({ length }) => length)) - 1
  const handle = await open(file, 'r')
  try {
    const buffer = Buffer.alloc(PIECE + overlap)
    for (let at = 0; ; at += PIECE) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at)
      const piece = buffer.subarray(0, bytesRead)
      if (traces.some((trace) => piece.indexOf(trace) !== -1)) return true
      if (bytesRead < buffer.length) return false
    }
  } finally {
    await handle.close()
  }
}
