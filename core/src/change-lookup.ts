import type { EngineReader, Row } from './engine/engine.ts'
import { corruptIndex } from './keys.ts'
import { nodeObjectId } from './object.ts'
import { type Change, decodeRecord } from './record.ts'

/** A change that gives a node a value, or what a purge left of it. */
export type SettingChange = Extract<Change, { kind: 'item' | 'node' | 'redacted' }>

/** The id of the object that a change sets as node `id`: what a purge leaves still says it. */
export function settingObject(id: string, change: SettingChange): Buffer {
  return change.kind === 'redacted' ? Buffer.from(change.object) : nodeObjectId(id, change.fields)
}

/** A node, by its number or id, and the row that set it. */
export interface NodePlace {
  key: number | string
  seq: number
}

/**
 * Finds the changes that set nodes, by the rows that they stand in. A batch is one row with many changes, so what was read
 * for one call is kept for the next: a listing in slices reads each row once.
 */
export class ChangeLookup {
  private readonly reader: EngineReader
  private readonly memory: number
  private rows = new Map<number, { row: Row; changes: Map<number | string, SettingChange> }>()

  constructor(reader: EngineReader, memory: number) {
    this.reader = reader
    this.memory = memory
  }

  /** The changes that set these nodes, in the order asked. Throws `corrupt_store` where a row does not set its node. */
  async find(places: readonly NodePlace[]): Promise<SettingChange[]> {
    return (await this.findWithRows(places)).map(({ change }) => change)
  }

  /** The same, each with the row that it stands in. */
  async findWithRows(places: readonly NodePlace[]): Promise<{ row: Row; change: SettingChange }[]> {
    await this.load(new Set(places.map(({ seq }) => seq)))
    return places.map(({ key, seq }) => {
      const found = this.rows.get(seq)
      const change = found?.changes.get(key)
      if (found === undefined || change === undefined) {
        throw corruptIndex('a row does not set the node it is known for', found?.row.id ?? new Uint8Array())
      }
      return { row: found.row, change }
    })
  }

  private async load(seqs: ReadonlySet<number>): Promise<void> {
    const missing = Array.from(seqs).filter((seq) => !this.rows.has(seq))
    for (const seq of this.rows.keys()) if (!seqs.has(seq)) this.rows.delete(seq)
    if (missing.length === 0) return
    for (const row of await this.reader.rows(this.memory, missing)) {
      const changes = new Map<number | string, SettingChange>()
      for (const change of decodeRecord(row.body).changes) {
        if (change.kind === 'item' || change.kind === 'redacted') changes.set(change.number, change)
        else if (change.kind === 'node') changes.set(change.id, change)
      }
      this.rows.set(row.seq, { row, changes })
    }
  }
}
