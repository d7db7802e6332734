import { MnemError } from '../errors.ts'
import { Mutex } from '../mutex.ts'
import { missingRow } from './checksum.ts'
import type { Engine, EngineReader, EngineWriter, Entry, MemoryRecord, Page, Row } from './engine.ts'

interface Contents {
  memories: Map<string, MemoryRecord>
  lastMemory: number
  lastSeq: number
  refs: Map<string, number>
  rows: Map<number, Row>
  /** By memory and hex of the key, which sorts as the bytes do. */
  entries: Map<number, Map<string, Entry>>
}

function emptyContents(): Contents {
  return {
    memories: new Map(),
    lastMemory: 0,
    lastSeq: 0,
    refs: new Map(),
    rows: new Map(),
    entries: new Map(),
  }
}

class MemoryReader implements EngineReader {
  protected contents: Contents

  constructor(contents: Contents) {
    this.contents = contents
  }

  async memory(name: string): Promise<MemoryRecord | undefined> {
    return this.contents.memories.get(name)
  }

  async memories(prefix: string, after: string | undefined, limit: number): Promise<MemoryRecord[]> {
    return Array.from(this.contents.memories.values())
      .filter(({ name }) => name.startsWith(prefix) && (after === undefined || compareText(name, after) > 0))
      .sort((a, b) => compareText(a.name, b.name))
      .slice(0, limit)
  }

  async ref(memory: number, branch: string): Promise<number | undefined> {
    return this.contents.refs.get(refKey(memory, branch))
  }

  async refs(memory: number): Promise<{ branch: string; seq: number }[]> {
    const start = refKey(memory, '')
    return Array.from(this.contents.refs, ([key, seq]) => ({ key, seq }))
      .filter(({ key }) => key.startsWith(start))
      .map(({ key, seq }) => ({ branch: key.slice(start.length), seq }))
      .sort((a, b) => compareText(a.branch, b.branch))
  }

  async rows(memory: number, seqs: readonly number[]): Promise<Row[]> {
    return seqs.map((seq) => {
      const row = this.contents.rows.get(seq)
      if (row === undefined || row.memory !== memory) throw missingRow(seq)
      return row
    })
  }

  async line(memory: number, line: number, from: number, to: number, page: Page = {}): Promise<Row[]> {
    const found = Array.from(this.contents.rows.values())
      .filter((row) => row.memory === memory && row.line === line && row.depth >= from && row.depth <= to)
      .sort((a, b) => a.depth - b.depth)
    return paged(found, page)
  }

  async lines(memory: number): Promise<number> {
    let highest = 0
    for (const row of this.contents.rows.values())
      if (row.memory === memory) highest = Math.max(highest, row.line)
    return highest
  }

  async entries(memory: number, from: Uint8Array, to: Uint8Array, page: Page = {}): Promise<Entry[]> {
    const found = Array.from(this.contents.entries.get(memory)?.values() ?? [])
      .filter(({ key }) => Buffer.compare(key, from) >= 0 && Buffer.compare(key, to) < 0)
      .sort((a, b) => Buffer.compare(a.key, b.key))
    return paged(found, page)
  }

  async counts(memory?: number): Promise<{ memories: number; commits: number; bytes: number }> {
    const rows = Array.from(this.contents.rows.values())
    const commits = rows.filter((row) => memory === undefined || row.memory === memory).length
    return { memories: this.contents.memories.size, commits, bytes: 0 }
  }
}

/** Works on a copy of the contents, which takes their place when the transaction is done. */
class MemoryWriter extends MemoryReader implements EngineWriter {
  constructor(contents: Contents) {
    super({
      memories: new Map(contents.memories),
      lastMemory: contents.lastMemory,
      lastSeq: contents.lastSeq,
      refs: new Map(contents.refs),
      rows: new Map(contents.rows),
      entries: new Map(Array.from(contents.entries, ([memory, entries]) => [memory, new Map(entries)])),
    })
  }

  get result(): Contents {
    return this.contents
  }

  async createMemory(name: string, prefix: string, default_branch: string): Promise<MemoryRecord> {
    const record = { id: ++this.contents.lastMemory, name, prefix, default_branch, epoch: 0 }
    this.contents.memories.set(name, record)
    return record
  }

  async nextSeq(): Promise<number> {
    return this.contents.lastSeq + 1
  }

  async append(row: Row): Promise<void> {
    const [taken] = await this.line(row.memory, row.line, row.depth, row.depth)
    if (taken !== undefined || this.contents.rows.has(row.seq))
      throw new Error('the place of the row is taken')
    this.contents.rows.set(row.seq, row)
    this.contents.lastSeq = Math.max(this.contents.lastSeq, row.seq)
  }

  async rewrite(row: Row): Promise<void> {
    this.contents.rows.set(row.seq, row)
  }

  async setEpoch(memory: MemoryRecord, epoch: number): Promise<void> {
    this.contents.memories.set(memory.name, { ...memory, epoch })
  }

  async moveRef(memory: number, branch: string, expected: number | undefined, seq: number): Promise<boolean> {
    const key = refKey(memory, branch)
    if (this.contents.refs.get(key) !== expected) return false
    this.contents.refs.set(key, seq)
    return true
  }

  async deleteRef(memory: number, branch: string): Promise<boolean> {
    return this.contents.refs.delete(refKey(memory, branch))
  }

  async setDefaultBranch(memory: MemoryRecord, branch: string): Promise<void> {
    this.contents.memories.set(memory.name, { ...memory, default_branch: branch })
  }

  async putEntry(memory: number, key: Uint8Array, value: Uint8Array): Promise<void> {
    let entries = this.contents.entries.get(memory)
    if (entries === undefined) {
      entries = new Map()
      this.contents.entries.set(memory, entries)
    }
    entries.set(Buffer.from(key).toString('hex'), { key, value })
  }

  async renameMemory(memory: MemoryRecord, name: string): Promise<void> {
    this.contents.memories.delete(memory.name)
    this.contents.memories.set(name, { ...memory, name })
  }

  async deleteMemory(memory: number): Promise<void> {
    for (const [name, { id }] of this.contents.memories)
      if (id === memory) this.contents.memories.delete(name)
    for (const { branch } of await this.refs(memory)) this.contents.refs.delete(refKey(memory, branch))
    for (const [seq, row] of this.contents.rows) if (row.memory === memory) this.contents.rows.delete(seq)
    this.contents.entries.delete(memory)
  }

  async deleteEntries(memory: number, from: Uint8Array, to: Uint8Array): Promise<void> {
    for (const { key } of await this.entries(memory, from, to))
      this.contents.entries.get(memory)?.delete(Buffer.from(key).toString('hex'))
  }

  async newLine(memory: number): Promise<number> {
    return (await this.lines(memory)) + 1
  }
}

/** An engine that keeps nothing beyond the process: for tests, and to show that all above an engine works on any. */
export class MemoryEngine extends MemoryReader implements Engine {
  readonly schemaVersion = 1
  private readonly writing = new Mutex()

  constructor() {
    super(emptyContents())
  }

  transact<T>(work: (writer: EngineWriter) => Promise<T>): Promise<T> {
    return this.writing.run(async () => {
      const writer = new MemoryWriter(this.contents)
      const result = await work(writer)
      this.contents = writer.result
      return result
    })
  }

  bytes(): number {
    return 0
  }

  checkWritable(): void {}

  async backup(): Promise<number> {
    throw new MnemError('store_io', 'This store is kept in memory only; there is nothing to copy.', {
      reason: 'memory',
    })
  }

  async erase(): Promise<void> {}

  async close(): Promise<void> {
    await this.writing.run(async () => undefined)
  }
}

function refKey(memory: number, branch: string): string {
  return `${memory} ${branch}`
}

function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

function paged<T>(found: T[], page: Page): T[] {
  const ordered = page.reverse === true ? found.reverse() : found
  return ordered.slice(0, page.limit)
}
