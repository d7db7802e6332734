import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'

const PAUSE_MS = 10

/** Somebody else held the lock past the bound. */
export class LockedError extends Error {
  override readonly name = 'LockedError'
}

/**
 * Run `work` while no other process runs its own under the same lock file, waiting for at most `boundMs`. The kernel
 * frees the lock when a process dies, however it does. Node itself has no file locks; SQLite's are used, on an empty file
 * that stays where it is: whoever removed it could remove one that another process has just locked.
 *
 * Throws `LockedError`, or what opening the file fails with.
 */
export async function withFileLock<T>(file: string, boundMs: number, work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + boundMs
  const db = new DatabaseSync(file, { timeout: 0 })
  try {
    while (!tryLock(db)) {
      if (performance.now() >= deadline) throw new LockedError(file)
      await delay(PAUSE_MS * (0.5 + Math.random()))
    }
    return await work()
  } finally {
    db.close()
  }
}

const BUSY = 5

function tryLock(db: DatabaseSync): boolean {
  try {
    db.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === BUSY) return false
    throw error
  }
}
