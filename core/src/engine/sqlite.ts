import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { MnemError } from '../errors.ts'
import { Mutex } from '../mutex.ts'
import {
  damaged,
  damagedRow,
  entryChecksum,
  memoryChecksum,
  missingRow,
  refChecksum,
  rowChecksum,
} from './checksum.ts'
import type { Engine, EngineReader, EngineWriter, Entry, MemoryRecord, Page, Row } from './engine.ts'
import { backupStore } from './sqlite-backup.ts'
import { checkStore } from './sqlite-check.ts'
import { eraseTraces } from './sqlite-erase.ts'
import { isBusy, translate } from './sqlite-errors.ts'
import { openConnection, prepareFile, SCHEMA_VERSION } from './sqlite-file.ts'
import { checkStoreAccess } from './store-access.ts'

export interface SqliteOptions {
  /** Milliseconds to wait for another process's lock before `busy`. Default 10,000. */
  busyTimeout?: number
  /** Told of each transaction that reached the disk: milliseconds that its COMMIT, and so the fsync, took. */
  onCommit?: (ms: number) => void
}

type Record_ = Record<string, SQLOutputValue>

const ROW = 'SELECT seq, memory, line, depth, parent, parent2, id, body, checksum FROM row'
const MEMORY = 'SELECT id, name, prefix, default_branch, epoch, checksum FROM memory'

/** Calls `SQLITE_BUSY` again with growing, jittered pauses that leave the event loop to others. */
class Patience {
  private readonly bound: number
  constructor(bound: number) {
    this.bound = bound
  }

  async call<T>(attempt: () => T): Promise<T> {
    const deadline = performance.now() + this.bound
    for (let pause = 1; ; pause = Math.min(pause * 2, 50)) {
      try {
        return attempt()
      } catch (error) {
        if (!isBusy(error)) throw translate(error)
        if (performance.now() >= deadline) {
          const message = `Another process has held the store for ${this.bound} ms; try again, or end the process that holds it.`
          throw new MnemError('busy', message, {}, { cause: error })
        }
        await delay(pause * (0.5 + Math.random()))
      }
    }
  }
}

/** Statements over one connection. Inside a transaction the connection is held, so nothing there is ever busy. */
class SqliteReader implements EngineReader {
  protected readonly db: DatabaseSync
  protected readonly patience: Patience
  protected readonly file: string
  private readonly statements = new Map<string, StatementSync>()

  constructor(db: DatabaseSync, file: string, patience: Patience) {
    this.db = db
    this.file = file
    this.patience = patience
  }

  async memory(name: string): Promise<MemoryRecord | undefined> {
    const found = await this.get(`${MEMORY} WHERE name = ?`, name)
    return found && toMemory(found)
  }

  async memories(prefix: string, after: string | undefined, limit: number): Promise<MemoryRecord[]> {
    // SQLite compares TEXT as its UTF-8 bytes, so the names with a prefix are neighbours.
    const sql = `${MEMORY} WHERE name >= ?1 AND substr(name, 1, length(?1)) = ?1 AND (?2 IS NULL OR name > ?2) ORDER BY name LIMIT ?3`
    return (await this.all(sql, prefix, after ?? null, limit)).map(toMemory)
  }

  async ref(memory: number, branch: string): Promise<number | undefined> {
    const found = await this.get(
      'SELECT seq, checksum FROM ref WHERE memory = ? AND branch = ?',
      memory,
      branch,
    )
    if (found === undefined) return undefined
    const seq = found.seq as number
    if (!matches(found, () => refChecksum(memory, branch, seq)))
      throw damaged('a branch’s head', `ref ${branch}`)
    return seq
  }

  async refs(memory: number): Promise<{ branch: string; seq: number }[]> {
    const sql = 'SELECT branch, seq, checksum FROM ref WHERE memory = ? ORDER BY branch'
    return (await this.all(sql, memory)).map((found) => {
      const [branch, seq] = [found.branch as string, found.seq as number]
      if (!matches(found, () => refChecksum(memory, branch, seq)))
        throw damaged('a branch’s head', `ref ${branch}`)
      return { branch, seq }
    })
  }

  async rows(memory: number, seqs: readonly number[]): Promise<Row[]> {
    if (seqs.length === 1) {
      const found = await this.get(`${ROW} WHERE seq = ? AND memory = ?`, seqs[0] as number, memory)
      if (found === undefined) throw missingRow(seqs[0] as number)
      return [toRow(found)]
    }
    const sql = `${ROW} WHERE memory = ? AND seq IN (SELECT value FROM json_each(?))`
    const bySeq = new Map<number, Row>()
    for (const found of await this.all(sql, memory, JSON.stringify(seqs)))
      bySeq.set(found.seq as number, toRow(found))
    return seqs.map((seq) => {
      const row = bySeq.get(seq)
      if (row === undefined) throw missingRow(seq)
      return row
    })
  }

  async line(memory: number, line: number, from: number, to: number, page: Page = {}): Promise<Row[]> {
    const order = page.reverse === true ? 'DESC' : 'ASC'
    const sql = `${ROW} WHERE memory = ? AND line = ? AND depth BETWEEN ? AND ? ORDER BY depth ${order} LIMIT ?`
    return (await this.all(sql, memory, line, from, to, page.limit ?? -1)).map(toRow)
  }

  async lines(memory: number): Promise<number> {
    return Number((await this.get('SELECT max(line) AS line FROM row WHERE memory = ?', memory))?.line ?? 0)
  }

  async entries(memory: number, from: Uint8Array, to: Uint8Array, page: Page = {}): Promise<Entry[]> {
    const order = page.reverse === true ? 'DESC' : 'ASC'
    const sql = `SELECT key, value, checksum FROM entry WHERE memory = ? AND key >= ? AND key < ? ORDER BY key ${order} LIMIT ?`
    return (await this.all(sql, memory, from, to, page.limit ?? -1)).map((found) => {
      const entry = { key: found.key as Uint8Array, value: found.value as Uint8Array }
      if (!matches(found, () => entryChecksum(memory, entry))) throw damaged('an index entry', 'index')
      return entry
    })
  }

  async counts(memory?: number): Promise<{ memories: number; commits: number; bytes: number }> {
    const count = async (sql: string, ...values: number[]) => Number((await this.get(sql, ...values))?.n)
    return {
      memories: await count('SELECT count(*) AS n FROM memory'),
      commits:
        memory === undefined
          ? await count('SELECT count(*) AS n FROM row')
          : await count('SELECT count(*) AS n FROM row WHERE memory = ?', memory),
      bytes: this.bytes(),
    }
  }

  bytes(): number {
    return fileSize(this.file) + fileSize(`${this.file}-wal`)
  }

  /** Let go of the connection. */
  end(): void {
    if (this.db.isOpen) this.db.close()
  }

  protected statement(sql: string): StatementSync {
    let statement = this.statements.get(sql)
    if (statement === undefined) {
      statement = this.db.prepare(sql)
      this.statements.set(sql, statement)
    }
    return statement
  }

  protected get(
    sql: string,
    ...values: (string | number | Uint8Array | null)[]
  ): Promise<Record_ | undefined> {
    return this.patience.call(() => this.statement(sql).get(...values) as Record_ | undefined)
  }

  private all(sql: string, ...values: (string | number | Uint8Array | null)[]): Promise<Record_[]> {
    return this.patience.call(() => this.statement(sql).all(...values) as Record_[])
  }
}

class SqliteWriter extends SqliteReader implements EngineWriter {
  async createMemory(name: string, prefix: string, default_branch: string): Promise<MemoryRecord> {
    const sql = 'INSERT INTO memory (name, prefix, default_branch, epoch, checksum) VALUES (?, ?, ?, 0, 0)'
    const id = Number(this.run(sql, name, prefix, default_branch).lastInsertRowid)
    const record = { id, name, prefix, default_branch, epoch: 0 }
    this.run('UPDATE memory SET checksum = ? WHERE id = ?', memoryChecksum(record), id)
    return record
  }

  async nextSeq(): Promise<number> {
    const { last } = this.statement('SELECT max(seq) AS last FROM row').get() as { last: number | null }
    return (last ?? 0) + 1
  }

  async append(row: Row): Promise<void> {
    const [parent = null, parent2 = null] = row.parents
    this.run(
      'INSERT INTO row (seq, memory, line, depth, parent, parent2, id, body, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
      row.seq,
      row.memory,
      row.line,
      row.depth,
      parent,
      parent2,
      row.id,
      row.body,
      rowChecksum(row),
    )
  }

  async rewrite(row: Row): Promise<void> {
    this.run('UPDATE row SET body = ?, checksum = ? WHERE seq = ?', row.body, rowChecksum(row), row.seq)
  }

  async setEpoch(memory: MemoryRecord, epoch: number): Promise<void> {
    const sum = memoryChecksum({ ...memory, epoch })
    this.run('UPDATE memory SET epoch = ?, checksum = ? WHERE id = ?', epoch, sum, memory.id)
  }

  async moveRef(memory: number, branch: string, expected: number | undefined, seq: number): Promise<boolean> {
    const sum = refChecksum(memory, branch, seq)
    const { changes } =
      expected === undefined
        ? this.run(
            'INSERT INTO ref (memory, branch, seq, checksum) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
            memory,
            branch,
            seq,
            sum,
          )
        : this.run(
            'UPDATE ref SET seq = ?, checksum = ? WHERE memory = ? AND branch = ? AND seq = ?',
            seq,
            sum,
            memory,
            branch,
            expected,
          )
    return Number(changes) === 1
  }

  async deleteRef(memory: number, branch: string): Promise<boolean> {
    const { changes } = this.run('DELETE FROM ref WHERE memory = ? AND branch = ?', memory, branch)
    return Number(changes) === 1
  }

  async setDefaultBranch(memory: MemoryRecord, branch: string): Promise<void> {
    const sum = memoryChecksum({ ...memory, default_branch: branch })
    this.run('UPDATE memory SET default_branch = ?, checksum = ? WHERE id = ?', branch, sum, memory.id)
  }

  async putEntry(memory: number, key: Uint8Array, value: Uint8Array): Promise<void> {
    const sql =
      'INSERT INTO entry (memory, key, value, checksum) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value, checksum = excluded.checksum'
    this.run(sql, memory, key, value, entryChecksum(memory, { key, value }))
  }

  async renameMemory(memory: MemoryRecord, name: string): Promise<void> {
    const sum = memoryChecksum({ ...memory, name })
    this.run('UPDATE memory SET name = ?, checksum = ? WHERE id = ?', name, sum, memory.id)
  }

  async deleteMemory(memory: number): Promise<void> {
    for (const table of ['row', 'ref', 'entry']) this.run(`DELETE FROM ${table} WHERE memory = ?`, memory)
    this.run('DELETE FROM memory WHERE id = ?', memory)
  }

  async deleteEntries(memory: number, from: Uint8Array, to: Uint8Array): Promise<void> {
    this.run('DELETE FROM entry WHERE memory = ? AND key >= ? AND key < ?', memory, from, to)
  }

  async newLine(memory: number): Promise<number> {
    return (await this.lines(memory)) + 1
  }

  /** Begin under the write lock, as soon as no other process has it. */
  begin(): Promise<void> {
    return this.patience.call(() => this.db.exec('BEGIN IMMEDIATE'))
  }

  commit(): Promise<void> {
    return this.patience.call(() => this.db.exec('COMMIT'))
  }

  /** Do what can't be part of a transaction. */
  execute(work: (db: DatabaseSync) => void): Promise<void> {
    return this.patience.call(() => work(this.db))
  }

  rollback(): void {
    if (this.db.isTransaction) this.db.exec('ROLLBACK')
  }

  private run(sql: string, ...values: (string | number | Uint8Array | null)[]) {
    return this.statement(sql).run(...values)
  }
}

/**
 * The engine on disk: one SQLite file a store directory, WAL, every commit synced. Reads have a connection of their own,
 * so that they never see a transaction that is under way.
 */
export class SqliteEngine extends SqliteReader implements Engine {
  readonly schemaVersion = SCHEMA_VERSION
  private readonly writer: SqliteWriter
  private readonly writing = new Mutex()
  private readonly dir: string
  private readonly onCommit: (ms: number) => void

  /** Open the store directory, making it where there is none. Throws `MnemError`: `store_io`, `corrupt_store`, `busy`. */
  static async open(dir: string, options: SqliteOptions = {}): Promise<SqliteEngine> {
    const patience = new Patience(options.busyTimeout ?? 10_000)
    const file = prepareFile(dir)
    const writing = await patience.call(() => openConnection(file))
    try {
      const reading = await patience.call(() => openConnection(file))
      reading.exec('PRAGMA query_only = ON')
      await patience.call(() => checkStore(reading))
      return new SqliteEngine(reading, new SqliteWriter(writing, file, patience), file, patience, options)
    } catch (error) {
      writing.close()
      throw error
    }
  }

  private constructor(
    reading: DatabaseSync,
    writer: SqliteWriter,
    file: string,
    patience: Patience,
    { onCommit = () => {} }: SqliteOptions,
  ) {
    super(reading, file, patience)
    this.writer = writer
    this.dir = dirname(file)
    this.onCommit = onCommit
  }

  transact<T>(work: (writer: EngineWriter) => Promise<T>): Promise<T> {
    return this.writing.run(async () => {
      await this.writer.begin()
      try {
        const result = await work(this.writer)
        const started = performance.now()
        await this.writer.commit()
        this.onCommit(performance.now() - started)
        return result
      } catch (error) {
        this.writer.rollback()
        throw translate(error)
      }
    })
  }

  checkWritable(): void {
    checkStoreAccess(this.dir)
  }

  backup(dir: string): Promise<number> {
    return backupStore(this.db, dir)
  }

  erase(traces?: readonly Uint8Array[]): Promise<void> {
    return this.writing.run(() => eraseTraces((work) => this.writer.execute(work), this.file, traces))
  }

  async close(): Promise<void> {
    await this.writing.run(async () => {
      this.end()
      this.writer.end()
    })
  }
}

function toRow(found: Record_): Row {
  const parents: number[] = []
  if (found.parent !== null) parents.push(found.parent as number)
  if (found.parent2 !== null) parents.push(found.parent2 as number)
  const row: Row = {
    seq: found.seq as number,
    memory: found.memory as number,
    line: found.line as number,
    depth: found.depth as number,
    parents,
    id: found.id as Uint8Array,
    body: found.body as Uint8Array,
  }
  if (!matches(found, () => rowChecksum(row))) throw damagedRow(row)
  return row
}

function toMemory(found: Record_): MemoryRecord {
  const { checksum: _, ...memory } = found as unknown as MemoryRecord & { checksum: number }
  if (!matches(found, () => memoryChecksum(memory))) throw damaged('a memory’s record', 'memory')
  return memory
}

/** Whether a record is what was written; damage can have made its values of any type. */
function matches({ checksum }: Record_, compute: () => number): boolean {
  try {
    return compute() === checksum
  } catch {
    return false
  }
}

function fileSize(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
