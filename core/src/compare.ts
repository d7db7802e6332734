import { breathe } from './breathe.ts'
import { forkOf, forwards, type Stretch, stretches } from './chain.ts'
import { ChangeLookup, type SettingChange, settingObject } from './change-lookup.ts'
import type { EngineReader, MemoryRecord, Row } from './engine/engine.ts'
import { renderNode } from './item.ts'
import { lastEvent } from './item-index.ts'
import { itemId } from './names.ts'
import { type Change, decodeRecord } from './record.ts'
import type { ItemChange } from './types.ts'

/** Items compared between two turns of the event loop. */
const CHUNK = 256

/** Where an item stands on one side: the row that set it; undefined where it is not live. */
type Side = Map<number, number | undefined>

/**
 * The items that differ between two commits, by number. Costs what changed on both sides since the chains of first
 * parents parted, whatever else the memory holds.
 */
export async function compare(
  reader: EngineReader,
  memory: MemoryRecord,
  from: Row | undefined,
  to: Row | undefined,
): Promise<ItemChange[]> {
  const [a, b] = [await chainOf(reader, from), await chainOf(reader, to)]
  const fork = forkOf(a, b)
  const [old, now] = [await touched(reader, from, fork), await touched(reader, to, fork)]
  const shared = fork === undefined ? [] : cutAt(a, fork)
  const numbers = Array.from(new Set([...old.keys(), ...now.keys()])).sort((x, y) => x - y)
  const changes: ItemChange[] = []
  const lookup = new ChangeLookup(reader, memory.id)
  for (let start = 0; start < numbers.length; start += CHUNK) {
    await breathe()
    const pairs: Pair[] = []
    for (const number of numbers.slice(start, start + CHUNK)) {
      const before = async () => {
        const event = await lastEvent(reader, memory.id, number, shared)
        return event?.set === true ? event.seq : undefined
      }
      pairs.push({
        number,
        old: old.has(number) ? old.get(number) : await before(),
        now: now.has(number) ? now.get(number) : await before(),
      })
    }
    changes.push(...(await show(lookup, memory.prefix, pairs)))
  }
  return changes
}

interface Pair {
  number: number
  old: number | undefined
  now: number | undefined
}

async function chainOf(reader: EngineReader, row: Row | undefined): Promise<Stretch[]> {
  return row === undefined ? [] : stretches(reader, row)
}

/** The chain from this place of it back to the root. */
function cutAt(chain: readonly Stretch[], { line, depth }: Pick<Row, 'line' | 'depth'>): Stretch[] {
  const index = chain.findIndex((stretch) => stretch.line === line)
  return [{ line, to: depth }, ...chain.slice(index + 1)]
}

/** What was set and removed from behind the fork up to `row`. */
async function touched(
  reader: EngineReader,
  row: Row | undefined,
  fork: Pick<Row, 'line' | 'depth'> | undefined,
): Promise<Side> {
  const side: Side = new Map()
  if (row === undefined) return side
  for await (const next of forwards(reader, row, fork)) {
    for (const change of decodeRecord(next.body).changes) touch(side, change, next.seq)
  }
  return side
}

function touch(side: Side, change: Change, seq: number): void {
  if (change.kind === 'item' || change.kind === 'redacted') side.set(change.number, seq)
  if (change.kind === 'remove') for (let i = 0; i < change.count; i++) side.set(change.from + i, undefined)
}

/** Those of the pairs that differ. */
async function show(lookup: ChangeLookup, prefix: string, pairs: readonly Pair[]): Promise<ItemChange[]> {
  const differing = pairs.filter((pair) => pair.old !== pair.now)
  const places = differing.flatMap(({ number, old, now }) =>
    [old, now].filter((seq) => seq !== undefined).map((seq) => ({ key: number, seq })),
  )
  const found = (await lookup.find(places)).values()
  const changes: ItemChange[] = []
  for (const { number, old, now } of differing) {
    const before = old === undefined ? undefined : (found.next().value as SettingChange)
    const after = now === undefined ? undefined : (found.next().value as SettingChange)
    const change = describe(prefix, number, before, after)
    if (change !== undefined) changes.push(change)
  }
  return changes
}

function describe(
  prefix: string,
  number: number,
  before: SettingChange | undefined,
  after: SettingChange | undefined,
): ItemChange | undefined {
  const id = itemId(prefix, number)
  const [old, now] = [before, after].map((change) => change && renderNode(prefix, number, change))
  if (old === undefined) return now && { id, kind: 'added', new: now }
  if (now === undefined) return { id, kind: 'removed', old }
  const isSame = settingObject(id, before as SettingChange).equals(settingObject(id, after as SettingChange))
  return isSame ? undefined : { id, kind: 'changed', old, new: now }
}
