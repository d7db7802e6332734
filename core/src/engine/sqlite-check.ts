import { DatabaseSync } from 'node:sqlite'
import { damaged, memoryChecksum } from './checksum.ts'
import type { MemoryRecord } from './engine.ts'
import { SCHEMA } from './sqlite-file.ts'

/**
 * What a store is looked over for when it is opened: damage that no later read would notice, because SQLite answers
 * "there is nothing" for what it can't find any more. Costs a look at each memory's record, not at any commit.
 *
 * Throws `MnemError` `corrupt_store`.
 */
export function checkStore(db: DatabaseSync): void {
  checkSchema(db)
  checkMemories(db)
}

/** The tables and indexes are the ones that we made: a changed definition makes SQLite look in other places. */
function checkSchema(db: DatabaseSync): void {
  const fresh = new DatabaseSync(':memory:')
  fresh.exec(SCHEMA)
  const expected = definitions(fresh)
  fresh.close()
  if (definitions(db) !== expected) throw damaged('the list of tables', 'schema')
}

function definitions(db: DatabaseSync): string {
  const rows = db
    .prepare(
      "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE type IN ('table', 'index') ORDER BY name",
    )
    .all()
  return JSON.stringify(rows)
}

/** Every memory's record is sound, and is found by its name: one that is not would pass for a memory not yet written. */
function checkMemories(db: DatabaseSync): void {
  const byTable = db
    .prepare('SELECT id, name, prefix, default_branch, epoch, checksum FROM memory NOT INDEXED')
    .all()
  const byName = db.prepare('SELECT id FROM memory INDEXED BY sqlite_autoindex_memory_1 WHERE name = ?')
  for (const { checksum, ...record } of byTable as unknown as (MemoryRecord & { checksum: number })[]) {
    const isSound =
      isText(record.name) && memoryChecksum(record) === checksum && byName.get(record.name)?.id === record.id
    if (!isSound) throw damaged('a memory’s record', 'memory')
  }
  const count = (how: string) => db.prepare(`SELECT count(*) AS n FROM memory ${how}`).get()?.n
  if (count('INDEXED BY sqlite_autoindex_memory_1') !== byTable.length)
    throw damaged('the list of memories', 'memory')
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}
