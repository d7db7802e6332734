import { closeSync, existsSync, fsyncSync, openSync, renameSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { backup, type DatabaseSync } from 'node:sqlite'
import { MnemError } from '../errors.ts'
import { translate } from './sqlite-errors.ts'
import { FILE_NAME, syncDirectory } from './sqlite-file.ts'
import { makeDirectory, storeUnusable } from './store-access.ts'

/** Pages copied between two turns of the event loop. */
const PAGES = 256

/** Copy the database of a store into another directory, where it appears once it is whole and on disk. */
export async function backupStore(db: DatabaseSync, dir: string): Promise<number> {
  const file = join(dir, FILE_NAME)
  const beside = `${file}.${process.pid}.part`
  try {
    makeDirectory(dir)
    refuseStore(file)
    closeSync(openSync(beside, 'wx', 0o600))
    await backup(db, beside, { rate: PAGES })
    sync(beside)
    refuseStore(file)
    renameSync(beside, file)
    syncDirectory(dir)
    return statSync(file).size
  } catch (error) {
    remove(beside)
    const known = translate(error)
    if (known instanceof MnemError) throw known
    throw (error as NodeJS.ErrnoException).syscall === undefined ? error : storeUnusable(dir, error)
  }
}

function remove(file: string): void {
  try {
    unlinkSync(file)
  } catch {
    // It was never there, or can't be reached any more.
  }
}

function refuseStore(file: string): void {
  if (!existsSync(file)) return
  throw new MnemError('conflict', `There is a store at ${file} already; give a directory without one.`, {
    reason: 'store',
  })
}

function sync(file: string): void {
  const fd = openSync(file, 'r+')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
