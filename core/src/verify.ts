import { breathe } from './breathe.ts'
import { stretches } from './chain.ts'
import { ChangeLookup, type SettingChange } from './change-lookup.ts'
import { encode } from './codec.ts'
import { indexEntries, newObjects } from './commit.ts'
import type { EngineReader, EngineWriter, Entry, MemoryRecord, Row } from './engine/engine.ts'
import { MnemError } from './errors.ts'
import { replay } from './heads.ts'
import { objectId, toHex } from './id.ts'
import { originOf } from './identity.ts'
import { lastEvent } from './item-index.ts'
import { after, derivedRanges, entrySeq, purgedKey, requestKey } from './keys.ts'
import { itemId } from './names.ts'
import { encodeCommit, nodeObjectId } from './object.ts'
import { purgedOf } from './purge.ts'
import { type Change, type CommitRecord, decodeRecord } from './record.ts'
import { State } from './state.ts'
import type { Problem, VerifyResult } from './types.ts'

const CHUNK = 256
/** Problems that are named; a store that is all wrong is told so by its first ones. */
const NAMED = 1000

/**
 * Derives every object of a memory again, from the rows alone, and compares: ids of commits and states, parents, heads,
 * and whatever was derived from the rows for speed. Rows that come while it runs are not looked at.
 */
export async function verify(reader: EngineReader, memory: MemoryRecord): Promise<VerifyResult> {
  return new Verifier(reader, memory).run()
}

/**
 * Make everything that is derived from the rows anew, and nothing else. Throws `corrupt_store`, before it changes anything,
 * where a row can't be read: what the indexes say of it would be lost.
 */
export async function rebuildIndex(writer: EngineWriter, memory: MemoryRecord): Promise<void> {
  for await (const row of allRows(writer, memory)) decodeRecord(row.body)
  for (const [from, to] of derivedRanges()) await writer.deleteEntries(memory.id, from, to)
  for await (const row of allRows(writer, memory)) await indexRow(writer, row)
}

async function* allRows(reader: EngineReader, memory: MemoryRecord): AsyncGenerator<Row> {
  const lines = await reader.lines(memory.id)
  for (let line = 1; line <= lines; line++) {
    for (let depth = 0; ; ) {
      await breathe()
      const rows = await reader.line(memory.id, line, depth, Number.MAX_SAFE_INTEGER, { limit: CHUNK })
      for (const row of rows) yield row
      const last = rows.at(-1)
      if (last === undefined) break
      depth = last.depth + 1
    }
  }
}

async function indexRow(writer: EngineWriter, row: Row): Promise<void> {
  const { changes, request } = decodeRecord(row.body)
  const [, second] = row.parents.length > 1 ? await writer.rows(row.memory, row.parents) : []
  for (const { key, value } of indexEntries(row, changes, second))
    await writer.putEntry(row.memory, key, value)
  if (request !== undefined) await writer.putEntry(row.memory, requestKey(request.key), encode(row.seq))
}

class Verifier {
  private readonly reader: EngineReader
  private readonly memory: MemoryRecord
  private readonly problems: Problem[] = []
  private readonly redacted = new Set<number>()
  private objects = 0
  /** The last row that was looked at, and how many index entries the rows up to there ask for. */
  private newest = 0
  private entries = 0

  constructor(reader: EngineReader, memory: MemoryRecord) {
    this.reader = reader
    this.memory = memory
  }

  async run(): Promise<VerifyResult> {
    const lines = await this.reader.lines(this.memory.id)
    for (let line = 1; line <= lines; line++) await this.verifyLine(line)
    await this.verifyRefs()
    await this.verifyEntries()
    const purged = (await this.attempt(() => purgedOf(this.reader, this.memory))) ?? []
    return {
      ok: this.problems.length === 0,
      objects: this.objects,
      problems: this.problems,
      redacted: Array.from(this.redacted, (number) => itemId(this.memory.prefix, number)).sort(),
      purged,
    }
  }

  private report(object: string, problem: string): void {
    if (this.problems.length < NAMED) this.problems.push({ object, problem })
  }

  /** Read a part of the store: what can't be read is a problem, and no reason to stop. */
  private async attempt<T>(read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof MnemError) || error.kind !== 'corrupt_store') throw error
      this.report(error.data.object ?? 'store', error.data.problem ?? error.message)
      return undefined
    }
  }

  private async verifyLine(line: number): Promise<void> {
    let state: State | undefined
    let before: Row | undefined
    let depth = -1
    for await (const row of this.rowsOf(line)) {
      if (before === undefined) {
        depth = row.depth
        state = await this.stateBefore(row)
      } else if (row.depth !== depth + 1) {
        this.report(
          `line ${line}, depth ${depth + 1}`,
          'a commit is missing; those behind it can’t be derived',
        )
        return
      }
      depth = row.depth
      if (state === undefined) return
      if (!(await this.verifyRow(row, before, state))) return
      before = row
      this.newest = Math.max(this.newest, row.seq)
    }
  }

  /** The rows of a line; a damaged one is told, and ends it. */
  private async *rowsOf(line: number): AsyncGenerator<Row> {
    for (let depth = 0; ; ) {
      await breathe()
      const read = (limit: number) =>
        this.reader.line(this.memory.id, line, depth, Number.MAX_SAFE_INTEGER, { limit })
      let rows = await read(CHUNK).catch(() => undefined)
      // One of them is damaged: those before it one by one.
      const isWhole = rows !== undefined
      rows ??= await this.attempt(() => read(1))
      if (rows === undefined) {
        this.report(`line ${line}, depth ${depth}`, 'a commit is damaged; those behind it can’t be derived')
        return
      }
      for (const row of rows) yield row
      const last = rows.at(-1)
      if (last === undefined || (isWhole && rows.length < CHUNK)) return
      depth = last.depth + 1
    }
  }

  /** The state that a line's first row builds on. */
  private async stateBefore(row: Row): Promise<State | undefined> {
    const [first] = row.parents
    if (first === undefined) return new State(this.memory.prefix)
    return this.attempt(async () => {
      const [parent] = (await this.reader.rows(this.memory.id, [first])) as [Row]
      return (await replay(this.reader, this.memory.prefix, parent)).state
    })
  }

  private async verifyRow(row: Row, before: Row | undefined, state: State): Promise<boolean> {
    const name = toHex(row.id)
    const record = await this.attempt(async () => decodeRecord(row.body))
    if (record === undefined) return false
    const parents = await this.attempt(() => this.parentsOf(row, before))
    if (parents === undefined) return false
    if (parents.some((parent) => parent.seq >= row.seq)) this.report(name, 'a parent was written after it')
    const objects = newObjects(this.memory.prefix, record.changes)
    state.apply(row.seq, record, objects)
    const lookup = new ChangeLookup(this.reader, this.memory.id)
    const stateId = await this.attempt(() => state.id((missing) => lookup.find(missing)))
    if (stateId === undefined) return false
    this.objects += 2 + countNodes(record.changes)
    if (!stateId.equals(record.state)) this.report(name, 'its state is not the one that its changes give')
    const id = objectId(encodeCommit({ ...record, parents: parents.map((parent) => parent.id) }))
    if (!id.equals(row.id)) this.report(name, 'its id is not the one that its fields give')
    await this.verifyRedacted(name, record)
    await this.verifyOrigins(name, record, parents[1])
    await this.verifyIndex(name, row, record, parents[1])
    return true
  }

  private async parentsOf(row: Row, before: Row | undefined): Promise<Row[]> {
    if (before !== undefined && row.parents.length === 1 && row.parents[0] === before.seq) return [before]
    return row.parents.length === 0 ? [] : this.reader.rows(this.memory.id, row.parents)
  }

  /** Content that is gone was purged by somebody. */
  private async verifyRedacted(name: string, record: CommitRecord): Promise<void> {
    for (const change of record.changes) {
      if (change.kind !== 'redacted') continue
      this.redacted.add(change.number)
      const key = purgedKey(change.object)
      const noted = await this.attempt(() => this.reader.entries(this.memory.id, key, after(key)))
      if (noted?.length === 0)
        this.report(name, `the content of item ${change.number} is gone, and no purge took it`)
    }
  }

  /** What a merge took from its second parent is what stands there. */
  private async verifyOrigins(name: string, record: CommitRecord, second: Row | undefined): Promise<void> {
    if (second === undefined) return
    const lookup = new ChangeLookup(this.reader, this.memory.id)
    await this.attempt(async () => {
      const chain = await stretches(this.reader, second)
      for (const change of record.changes) {
        const theirs = originOf(change)?.theirs
        if (theirs === undefined || (change.kind !== 'item' && change.kind !== 'redacted')) continue
        const event = await lastEvent(this.reader, this.memory.id, theirs, chain)
        const [taken] = event?.set === true ? await lookup.find([{ key: theirs, seq: event.seq }]) : []
        if (taken === undefined || !isSameValue(change, taken))
          this.report(name, `item ${change.number} is not what its second parent has at ${theirs}`)
      }
    })
  }

  private async verifyIndex(
    name: string,
    row: Row,
    record: CommitRecord,
    second: Row | undefined,
  ): Promise<void> {
    for (const expected of indexEntries(row, record.changes, second)) {
      this.entries++
      await this.verifyEntry(name, expected)
    }
    const key = record.request && requestKey(record.request.key)
    if (key !== undefined) {
      const [found] = (await this.attempt(() => this.reader.entries(this.memory.id, key, after(key)))) ?? []
      if (found === undefined) this.report(name, 'the index of idempotency keys misses it')
    }
  }

  private async verifyEntry(name: string, { key, value }: Entry): Promise<void> {
    const [found] = (await this.attempt(() => this.reader.entries(this.memory.id, key, after(key)))) ?? []
    if (found === undefined) this.report(name, 'an index misses it')
    else if (Buffer.compare(found.value, value) !== 0) this.report(name, 'an index says something else of it')
  }

  private async verifyRefs(): Promise<void> {
    const refs = await this.attempt(() => this.reader.refs(this.memory.id))
    for (const { branch, seq } of refs ?? []) {
      const [row] = (await this.attempt(() => this.reader.rows(this.memory.id, [seq]))) ?? []
      if (row === undefined) this.report(`branch ${branch}`, 'it points at no commit')
    }
    const isThere = refs?.some(({ branch }) => branch === this.memory.default_branch)
    if (refs !== undefined && this.newest > 0 && !isThere)
      this.report(`branch ${this.memory.default_branch}`, 'the default branch is not there')
  }

  /** Nothing stands in the indexes that no row asks for: each that a row asks for was found, so the number tells. */
  private async verifyEntries(): Promise<void> {
    let found = 0
    for (const [from, to] of derivedRanges()) {
      for (let start = from; ; ) {
        await breathe()
        const page = await this.attempt(() =>
          this.reader.entries(this.memory.id, start, to, { limit: CHUNK }),
        )
        if (page === undefined) return
        for (const entry of page) {
          const seq = entrySeq(entry)
          if (seq === undefined || seq <= this.newest) found++
        }
        const last = page.at(-1)
        if (last === undefined || page.length < CHUNK) break
        start = after(last.key)
      }
    }
    // What belongs to damaged rows is not counted: those are told of already.
    if (this.problems.length === 0 && found !== this.entries)
      this.report('index', `it has ${found} entries, and the commits ask for ${this.entries}`)
  }
}

/** Of two purged ones there is nothing left to compare. */
function isSameValue(a: SettingChange, b: SettingChange): boolean {
  if (a.kind === 'redacted' || b.kind === 'redacted') return a.kind === b.kind
  return nodeObjectId('', a.fields).equals(nodeObjectId('', b.fields))
}

function countNodes(changes: readonly Change[]): number {
  return changes.filter(({ kind }) => kind === 'item' || kind === 'node' || kind === 'counter').length
}
