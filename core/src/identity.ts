import { breathe } from './breathe.ts'
import { type Stretch, stretches } from './chain.ts'
import { ChangeLookup, type SettingChange } from './change-lookup.ts'
import type { EngineReader, Row } from './engine/engine.ts'
import { fromHex, toHex } from './id.ts'
import { lastEvent } from './item-index.ts'
import { corruptIndex } from './keys.ts'
import type { Copy } from './merge.ts'
import { encodeNode, type NodeFields } from './object.ts'
import type { Change, Origin } from './record.ts'
import type { ItemPlace } from './state.ts'

/** A value of an item: the row that gave it, the number that it has there, and the change itself. */
export interface Written {
  row: Row
  number: number
  change: SettingChange
}

/** Who gave an item the value that it has behind this chain, followed through merges; undefined where it is not live. */
export async function writerOf(
  reader: EngineReader,
  memory: number,
  number: number,
  chain: readonly Stretch[],
): Promise<Written | undefined> {
  const event = await lastEvent(reader, memory, number, chain)
  if (event?.set !== true) return undefined
  return follow(reader, new ChangeLookup(reader, memory), { number, seq: event.seq })
}

/** From the row that set an item back to the one that first gave it this value. */
async function follow(reader: EngineReader, lookup: ChangeLookup, place: ItemPlace): Promise<Written> {
  for (let { number, seq } = place; ; ) {
    const [written] = await lookup.findWithRows([{ key: number, seq }])
    const { row, change } = written as { row: Row; change: SettingChange }
    const theirs = originOf(change)?.theirs
    const second = row.parents[1]
    if (theirs === undefined || second === undefined) return { row, number, change }
    const [parent] = (await reader.rows(row.memory, [second])) as [Row]
    const event = await lastEvent(reader, row.memory, theirs, await stretches(reader, parent))
    if (event?.set !== true)
      throw corruptIndex('a merge took an item that its second parent does not have', row.id)
    number = theirs
    seq = event.seq
  }
}

const CHUNK = 256

/** Items as a merge looks at them, by the rows that set them. */
export async function copiesOf(
  reader: EngineReader,
  memory: number,
  places: readonly ItemPlace[],
): Promise<Copy[]> {
  const lookup = new ChangeLookup(reader, memory)
  const copies: Copy[] = []
  for (let start = 0; start < places.length; start += CHUNK) {
    await breathe()
    const some = places.slice(start, start + CHUNK)
    const found = await lookup.findWithRows(some.map(({ number, seq }) => ({ key: number, seq })))
    for (const [index, { row, change }] of found.entries()) {
      const { number } = some[index] as ItemPlace
      const origin = originOf(change)
      const born = showOrigin(origin ?? { commit: row.id, number })
      // What was not taken from a second parent was written here.
      const isTaken = origin?.theirs !== undefined
      const why = isTaken
        ? await whyOf(reader, memory, { number, seq: row.seq })
        : showOrigin({ commit: row.id, number })
      copies.push(new StoredCopy(number, born, why, change))
    }
  }
  return copies
}

/** What a change says of where its item was born; undefined: right there. */
export function originOf(change: Change): Origin | undefined {
  return change.kind === 'item' || change.kind === 'redacted' ? change.origin : undefined
}

async function whyOf(reader: EngineReader, memory: number, place: ItemPlace): Promise<string> {
  // A look-up of its own: the one of the caller keeps the rows of its slice.
  const { row, number } = await follow(reader, new ChangeLookup(reader, memory), place)
  return showOrigin({ commit: row.id, number })
}

/** Its value is hashed only when it is compared. */
class StoredCopy implements Copy {
  readonly number: number
  readonly origin: string
  readonly why: string
  readonly fields: NodeFields | undefined
  readonly object: Uint8Array | undefined

  constructor(number: number, origin: string, why: string, change: SettingChange) {
    this.number = number
    this.origin = origin
    this.why = why
    this.fields = change.kind === 'redacted' ? undefined : change.fields
    this.object = change.kind === 'redacted' ? change.object : undefined
  }

  get value(): string {
    if (this.object !== undefined) return `purged ${toHex(this.object)}`
    return encodeNode('', this.fields as NodeFields).toString('latin1')
  }
}

export function showOrigin({ commit, number }: Pick<Origin, 'commit' | 'number'>): string {
  return `${toHex(commit)} ${number}`
}

export function readOrigin(text: string): Pick<Origin, 'commit' | 'number'> {
  const [commit, number] = text.split(' ') as [string, string]
  return { commit: fromHex(commit), number: Number(number) }
}
