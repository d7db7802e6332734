import { randomUUID } from 'node:crypto'
import { ChangeLookup, type SettingChange } from './change-lookup.ts'
import { indexEntries, newObjects, nextPlace, rowOf } from './commit.ts'
import type { Engine, EngineWriter, MemoryRecord, Row } from './engine/engine.ts'
import { MnemError } from './errors.ts'
import { replay } from './heads.ts'
import { fromHex, objectId, toHex } from './id.ts'
import { copiesOf, readOrigin } from './identity.ts'
import {
  badLine,
  type CommitLine,
  type Footer,
  type Header,
  isFooter,
  readHeader,
  readLine,
} from './import-line.ts'
import { purgedKey } from './keys.ts'
import { type Copy, planMerge } from './merge.ts'
import { gather } from './merging.ts'
import { checkMemoryName, itemId, itemNumber } from './names.ts'
import { encodeCommit, encodeNode } from './object.ts'
import { holders, notePurged, purgedEver, purgedOf, purgedValue } from './purge.ts'
import { type Change, encodeRecord, type Origin } from './record.ts'
import { State } from './state.ts'

/** Begins the name under which an import stands until it is whole: no memory can be called so. */
const STAGING = '\u0000import '
/** Names from here on are callers'. */
export const FIRST_NAME = '\u001f'
/** An import that nobody went on with for so long was given up. */
const STALE_MS = 24 * 3600 * 1000

/** Lines, and characters of them, that are stored in one transaction. */
const LINES = 256
const CHARACTERS = 4 * 1024 * 1024
/** Commits whose state is kept for those behind them. */
const KEPT = 64

/**
 * Takes an export (format.md, "changes") in pieces of any size. Every id is derived again. It is stored as it comes, under
 * a name of its own, so that neither its size nor the time that it takes holds anybody up; only when all of it has come
 * and is sound does it get the name that was asked for.
 */
export class Importer {
  private readonly engine: Engine
  private readonly name: string
  private rest = ''
  private line = 0
  private header: Header | undefined
  private footer: Footer | undefined
  private staging: MemoryRecord | undefined
  private commits = 0
  private changes = 0
  private readonly states = new Map<number, State>()
  private readonly force: boolean
  /** What was purged of the store before this import began, and must not come back. */
  private purged: ReadonlyMap<string, number> = new Map()

  /** With `force` content comes back that was purged of this store. */
  constructor(engine: Engine, name: string, force = false) {
    checkMemoryName(name)
    this.engine = engine
    this.name = name
    this.force = force
  }

  /** Take the next piece. Throws `corrupt_store` naming the first line that is wrong, or `conflict` where the name is taken. */
  async take(text: string): Promise<void> {
    const lines = (this.rest + text).split('\n')
    this.rest = lines.pop() as string
    for (let start = 0; start < lines.length; ) {
      let end = start
      for (let size = 0; end < lines.length && end - start < LINES && size < CHARACTERS; end++)
        size += (lines[end] as string).length
      await this.store(lines.slice(start, end))
      start = end
    }
  }

  /** All has come: give the memory its name, and tell the commit that its default branch points at. */
  async finish(): Promise<{ commit: string; commits: number }> {
    if (this.rest.trim() !== '') await this.take('\n')
    const { header, footer, staging } = this
    if (header === undefined || staging === undefined) throw badLine(this.line + 1, 'is missing: it is empty')
    if (footer === undefined) throw badLine(this.line + 1, 'is missing: it was cut off')
    if (footer.commits !== this.commits || footer.changes !== this.changes)
      throw badLine(this.line, `counts other commits or changes than the ${this.commits} that came`)
    await this.engine.transact(async (writer) => {
      for (const [branch, id] of header.refs) {
        const row = await rowOf(writer, staging.id, fromHex(id))
        if (row === undefined)
          throw badLine(1, `names a commit that is not in it, by branch ${JSON.stringify(branch)}`, id)
        await writer.moveRef(staging.id, branch, undefined, row.seq)
      }
      if (!header.refs.has(header.default_branch))
        throw badLine(1, 'has a default branch that is none of its branches')
      await this.checkName(writer)
      await this.checkPurgedSince(writer, staging)
      // From now on no other import brings those back either.
      for (const { object, id, ...note } of await purgedOf(writer, staging))
        await notePurged(writer, staging, fromHex(object), itemNumber(staging.prefix, id) as number, note)
      await writer.renameMemory(staging, this.name)
    })
    this.staging = undefined
    return { commit: header.refs.get(header.default_branch) as string, commits: this.commits }
  }

  /** Leave nothing behind. */
  async abort(): Promise<void> {
    const { staging } = this
    this.staging = undefined
    if (staging !== undefined) await this.engine.transact((writer) => writer.deleteMemory(staging.id))
  }

  private async store(lines: readonly string[]): Promise<void> {
    await this.engine.transact(async (writer) => {
      for (const text of lines) {
        this.line++
        if (this.header === undefined) await this.begin(writer, text)
        else if (this.footer !== undefined) throw badLine(this.line, 'comes behind the last one')
        else await this.add(writer, readLine(text, this.line, this.header.prefix))
      }
    })
  }

  private async begin(writer: EngineWriter, text: string): Promise<void> {
    const header = readHeader(text, this.line)
    await this.checkName(writer)
    this.purged = await purgedEver(writer)
    await removeStale(writer)
    const name = `${STAGING}${Date.now()} ${randomUUID()}`
    this.staging = await writer.createMemory(name, header.prefix, header.default_branch)
    this.header = header
  }

  private async checkName(writer: EngineWriter): Promise<void> {
    if ((await writer.memory(this.name)) === undefined) return
    throw new MnemError(
      'conflict',
      `There is a memory "${this.name}" already; import under another name, or delete that one first.`,
      { reason: 'memory' },
    )
  }

  private async add(writer: EngineWriter, line: CommitLine | Footer): Promise<void> {
    if (isFooter(line)) {
      this.footer = line
      return
    }
    const memory = this.staging as MemoryRecord
    const id = fromHex(line.id)
    if ((await rowOf(writer, memory.id, id)) !== undefined)
      throw badLine(this.line, 'has a commit a second time', line.id)
    const [first, second] = await this.parentsOf(writer, memory, line)
    const state = await this.stateOf(writer, memory, first)
    const changes = await this.withOrigins(writer, memory, line.changes, state, first, second)
    const row = await this.append(writer, memory, { ...line, changes }, state, first, second)
    this.keep(row, state)
    this.commits++
    this.changes += changes.reduce((sum, change) => sum + (change.kind === 'remove' ? change.count : 1), 0)
  }

  private async parentsOf(
    writer: EngineWriter,
    memory: MemoryRecord,
    { parents, id }: CommitLine,
  ): Promise<[Row | undefined, Row | undefined]> {
    const rows: Row[] = []
    for (const parent of parents) {
      const row = await rowOf(writer, memory.id, fromHex(parent))
      if (row === undefined) throw badLine(this.line, 'has a parent that does not stand before it', id)
      rows.push(row)
    }
    return [rows[0], rows[1]]
  }

  private async stateOf(
    writer: EngineWriter,
    { prefix }: MemoryRecord,
    row: Row | undefined,
  ): Promise<State> {
    if (row === undefined) return new State(prefix)
    const kept = this.states.get(row.seq)
    // Taken away: it is changed in place.
    this.states.delete(row.seq)
    return kept ?? (await replay(writer, prefix, row)).state
  }

  private keep(row: Row, state: State): void {
    this.states.set(row.seq, state)
    if (this.states.size > KEPT) this.states.delete(this.states.keys().next().value as number)
  }

  /** Where items come from that a merge took or that were edited, as the commits before it say. */
  private async withOrigins(
    writer: EngineWriter,
    memory: MemoryRecord,
    changes: Change[],
    state: State,
    first: Row | undefined,
    second: Row | undefined,
  ): Promise<Change[]> {
    const merged = first && second && (await this.mergeOf(writer, memory, state, first, second))
    const traced: Change[] = []
    for (const change of changes) {
      if (change.kind !== 'item' && change.kind !== 'redacted') {
        traced.push(change)
        continue
      }
      const origin = merged?.(change) ?? (await editOf(writer, memory, state, change.number))
      traced.push(origin === undefined ? change : { ...change, origin })
    }
    return traced
  }

  /** Tells for what a merge set whether it is what its second parent has, and under which number. */
  private async mergeOf(
    writer: EngineWriter,
    memory: MemoryRecord,
    state: State,
    first: Row,
    second: Row,
  ): Promise<(change: ItemSetting) => Origin | undefined> {
    const other = this.states.get(second.seq) ?? (await replay(writer, memory.prefix, second)).state
    const copies = await gather(writer, memory, first, second, state, other)
    const plan = planMerge({ ...copies, top: { ours: state.top, theirs: other.top } })
    const planned = new Map<number, Copy>()
    for (const { number, from } of [...plan.set, ...plan.lost])
      if (from !== undefined) planned.set(number, from)
    for (const { number, theirs } of plan.conflicts) if (theirs !== undefined) planned.set(number, theirs)
    const inPlace = new Map(copies.theirs.map((copy) => [copy.number, copy]))
    return (change) => {
      const { number } = change
      for (const copy of [planned.get(number), inPlace.get(number)])
        if (copy !== undefined && isTaken(change, copy))
          return { ...readOrigin(copy.origin), theirs: copy.number }
      return undefined
    }
  }

  private async append(
    writer: EngineWriter,
    memory: MemoryRecord,
    { id, author, message, time, changes }: CommitLine,
    state: State,
    first: Row | undefined,
    second: Row | undefined,
  ): Promise<Row> {
    const seq = await writer.nextSeq()
    const objects = newObjects(memory.prefix, changes)
    for (const [number, object] of objects)
      if (this.purged.has(toHex(object))) this.refusePurged(memory, number)
    state.apply(seq, { changes }, objects)
    const parents = [first, second].filter((row) => row !== undefined)
    const { line, depth } = await nextPlace(writer, memory.id, first)
    const row: Row = {
      seq,
      memory: memory.id,
      line,
      depth,
      parents: parents.map((parent) => parent.seq),
      id: fromHex(id),
      body: new Uint8Array(),
    }
    // The nodes that it sets are read from its own row where their ids are needed.
    const lookup = new ChangeLookup(writer, memory.id)
    const known = new Map(
      changes.flatMap((change) => (change.kind === 'node' ? [[change.id, change] as const] : [])),
    )
    const stateId = await state.id(async (missing) => {
      const others = missing.filter(({ key, seq: at }) => at !== seq || !known.has(String(key)))
      const read = (await lookup.find(others)).values()
      return missing.map(({ key, seq: at }) => {
        const own = at === seq ? known.get(String(key)) : undefined
        return own ?? (read.next().value as SettingChange)
      })
    })
    const derived = objectId(
      encodeCommit({ author, message, time, parents: parents.map((parent) => parent.id), state: stateId }),
    )
    if (toHex(derived) !== id)
      throw badLine(this.line, 'has an id that its fields and changes do not give', id)
    row.body = encodeRecord({ author, message, time, state: stateId, changes })
    await writer.append(row)
    for (const { key, value } of indexEntries(row, changes, second))
      await writer.putEntry(memory.id, key, value)
    for (const change of changes)
      if (change.kind === 'redacted') await this.noteRedacted(writer, memory, change)
    return row
  }

  private async noteRedacted(
    writer: EngineWriter,
    memory: MemoryRecord,
    { number, object }: Extract<Change, { kind: 'redacted' }>,
  ): Promise<void> {
    const note = this.header?.redacted.get(toHex(object)) ?? { author: '', time: 0, reason: '' }
    // With this memory alone until the import is whole.
    await writer.putEntry(memory.id, purgedKey(object), purgedValue(number, note))
  }

  /** What was purged while the import was under way. */
  private async checkPurgedSince(writer: EngineWriter, staging: MemoryRecord): Promise<void> {
    for (const [object, number] of await purgedEver(writer)) {
      if (this.purged.has(object)) continue
      const found = await holders(writer, staging, number, fromHex(object))
      if (found.some(({ hasContent }) => hasContent)) this.refusePurged(staging, number)
    }
  }

  private refusePurged({ prefix }: MemoryRecord, number: number): void {
    if (this.force) return
    throw new MnemError(
      'conflict',
      `The export brings back the content of ${itemId(prefix, number)}, which was purged from this store; nothing was imported. Import it with force if that is meant.`,
      { reason: 'purged', object: itemId(prefix, number) },
    )
  }
}

type ItemSetting = Extract<Change, { kind: 'item' | 'redacted' }>

/** Whether what a merge set is a copy's value; of purged ones under different numbers there is nothing to compare. */
function isTaken(change: ItemSetting, copy: Copy): boolean {
  if (change.kind === 'item') return copy.value === encodeNode('', change.fields).toString('latin1')
  if (copy.object === undefined) return false
  return copy.number !== change.number || Buffer.compare(copy.object, change.object) === 0
}

/** The origin of an item that a commit changes while it is live. */
async function editOf(
  writer: EngineWriter,
  memory: MemoryRecord,
  state: State,
  number: number,
): Promise<Origin | undefined> {
  const slot = state.item(number)
  if (slot === undefined) return undefined
  const [copy] = await copiesOf(writer, memory.id, [{ number, seq: slot.seq }])
  return readOrigin((copy as Copy).origin)
}

async function removeStale(writer: EngineWriter): Promise<void> {
  for (const { id, name } of await writer.memories(STAGING, undefined, 100)) {
    const begun = Number(name.slice(STAGING.length).split(' ', 1)[0])
    if (Date.now() - begun > STALE_MS) await writer.deleteMemory(id)
  }
}
