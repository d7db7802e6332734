import { closeSync, existsSync, fstatSync, fsyncSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { MnemError } from '../errors.ts'
import { checkStoreAccess, makeDirectory, storeUnusable } from './store-access.ts'

/** The one database file of a store directory. */
export const FILE_NAME = 'mnem.db'

/** Version of the tables below; a file with a higher one is refused. */
export const SCHEMA_VERSION = 1

/** "mnem" in ASCII: says in the file's header whose it is. */
const APPLICATION_ID = 0x6d6e656d

/** The tables of a new store. */
export const SCHEMA = `
CREATE TABLE memory (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  default_branch TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  checksum INTEGER NOT NULL
);
CREATE TABLE ref (
  memory INTEGER NOT NULL,
  branch TEXT NOT NULL,
  seq INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (memory, branch)
) WITHOUT ROWID;
CREATE TABLE row (
  seq INTEGER PRIMARY KEY,
  memory INTEGER NOT NULL,
  line INTEGER NOT NULL,
  depth INTEGER NOT NULL,
  parent INTEGER,
  parent2 INTEGER,
  id BLOB NOT NULL,
  body BLOB NOT NULL,
  checksum INTEGER NOT NULL
);
CREATE UNIQUE INDEX row_place ON row (memory, line, depth);
CREATE TABLE entry (
  memory INTEGER NOT NULL,
  key BLOB NOT NULL,
  value BLOB NOT NULL,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (memory, key)
) WITHOUT ROWID;
`

/** What each connection must have in force; SQLite ignores a PRAGMA that it can't carry out, so each is read back. */
const PRAGMAS: ReadonlyArray<readonly [name: string, set: string, inForce: string | number]> = [
  ['busy_timeout', '0', 0],
  ['journal_mode', 'WAL', 'wal'],
  ['synchronous', 'FULL', 2],
  ['secure_delete', 'ON', 1],
  ['temp_store', 'MEMORY', 2],
  ['trusted_schema', 'OFF', 0],
  // A WAL that one huge transaction grew is cut back to this many bytes when it is used again.
  ['journal_size_limit', '67108864', 67_108_864],
]

/** Whether this SQLite is free of the fault that loses commits when several connections write and checkpoint. */
export function isSafeSqlite(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  if (major !== 3) return major > 3
  if (minor === 44) return patch >= 6
  if (minor === 50) return patch >= 7
  return minor > 51 || (minor === 51 && patch >= 3)
}

/** Make the directory and an empty, private file where there is none, and look at the header of one that is there. */
export function prepareFile(dir: string): string {
  const version = process.versions.sqlite ?? '0'
  if (!isSafeSqlite(version)) {
    throw new MnemError(
      'store_io',
      `This Node has SQLite ${version}, which can lose commits when two processes write; run Node 24.19 or newer (SQLite 3.51.3 or newer).`,
      { reason: 'sqlite_version' },
    )
  }
  const file = join(dir, FILE_NAME)
  try {
    makeDirectory(dir)
    checkStoreAccess(dir)
    const isNew = !existsSync(file)
    const fd = openSync(file, 'a+', 0o600)
    try {
      checkHeader(fd, file)
      if (isNew) fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    if (isNew) syncDirectory(dir)
  } catch (error) {
    throw error instanceof MnemError ? error : storeUnusable(dir, error)
  }
  return file
}

/** A new file survives a power cut only when its directory entry does. */
export function syncDirectory(dir: string): void {
  if (process.platform === 'win32') return
  const fd = openSync(dir, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Refuse by the header alone, before SQLite is let near the file, so that not a byte of it changes. */
function checkHeader(fd: number, file: string): void {
  if (fstatSync(fd).size === 0) return
  const header = Buffer.alloc(100)
  readSync(fd, header, 0, 100, 0)
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    throw new MnemError(
      'corrupt_store',
      `${file} is no mnem store: it does not begin as an SQLite file does. Choose another --store directory, or restore it from a backup; nothing was changed.`,
      { object: FILE_NAME, problem: 'header' },
    )
  }
  checkVersion(header.readUInt32BE(60), file)
  checkOwner(header.readUInt32BE(68), header.readUInt32BE(60), file)
}

function checkVersion(version: number, file: string): void {
  if (version > SCHEMA_VERSION) {
    throw new MnemError(
      'store_io',
      `${file} has schema version ${version}, made by a newer mnem-sidecar; this one reads up to ${SCHEMA_VERSION}. Update mnem-sidecar; nothing was changed.`,
      { reason: 'schema_version' },
    )
  }
}

function checkOwner(application: number, version: number, file: string): void {
  if (application === APPLICATION_ID || (application === 0 && version === 0)) return
  throw new MnemError(
    'store_io',
    `${file} is another program's database. Choose another --store directory; nothing was changed.`,
    {
      reason: 'application_id',
    },
  )
}

/** Open a connection, and make the tables where the file is empty. `SQLITE_BUSY` passes through, to be tried again. */
export function openConnection(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: 0 })
  try {
    const number = (sql: string) => Number(Object.values(db.prepare(sql).get() ?? {})[0])
    const version = number('PRAGMA user_version')
    checkVersion(version, file)
    checkOwner(number('PRAGMA application_id'), version, file)
    if (version === 0 && number('SELECT count(*) FROM sqlite_master') > 0) checkOwner(-1, version, file)
    for (const [name, set] of PRAGMAS) db.exec(`PRAGMA ${name} = ${set}`)
    for (const [name, , inForce] of PRAGMAS) {
      const found = Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0]
      if (found !== inForce) {
        throw new MnemError(
          'store_io',
          `SQLite keeps ${name} at ${found} on ${file}, where ${inForce} is needed; move the store to a local disk.`,
          { reason: name },
        )
      }
    }
    if (version === 0) createTables(db)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function createTables(db: DatabaseSync): void {
  db.exec('BEGIN IMMEDIATE')
  try {
    const { user_version } = db.prepare('PRAGMA user_version').get() as { user_version: number }
    if (user_version === 0) {
      db.exec(SCHEMA)
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
      db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`)
    }
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
