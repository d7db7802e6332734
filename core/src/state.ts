import { objectId } from './id.ts'
import { counterId, itemId } from './names.ts'
import { encodeNode, encodeState, type NodeFields, nodeObjectId } from './object.ts'
import type { Change, CommitRecord } from './record.ts'

/** Where a live node stands: the row that gave it its value, and its object's id once that was needed. */
export interface Slot {
  seq: number
  object: Uint8Array | undefined
}

/** An item of a state: its number and the row that set it. */
export interface ItemPlace {
  number: number
  seq: number
}

/**
 * The live nodes at a commit: numbered items, the counter, and nodes that another tool wrote. Contents are not held,
 * only where they stand.
 */
export class State {
  readonly prefix: string
  private readonly itemSlots = new Map<number, Slot>()
  private readonly nodeSlots = new Map<string, Slot>()
  private counter: number | undefined
  private highest = -1
  private ascending = true

  constructor(prefix: string) {
    this.prefix = prefix
  }

  /** Live items. */
  get count(): number {
    return this.itemSlots.size
  }

  /** Nodes that are no items and not the counter. */
  get otherNodes(): IterableIterator<string> {
    return this.nodeSlots.keys()
  }

  get isEmpty(): boolean {
    return this.itemSlots.size === 0 && this.nodeSlots.size === 0 && this.counter === undefined
  }

  get hasCounter(): boolean {
    return this.counter !== undefined
  }

  /** The number that the next item gets: the counter, or one above the highest live item where that is larger. */
  get top(): number {
    return Math.max(this.counter ?? 0, this.highest + 1)
  }

  item(number: number): Slot | undefined {
    return this.itemSlots.get(number)
  }

  /** The items from the `from`-th on, in the order of their numbers; a copy, safe from later changes. */
  items(from = 0): ItemPlace[] {
    const places: ItemPlace[] = []
    let index = 0
    for (const [number, { seq }] of this.itemSlots)
      if (!this.ascending || index++ >= from) places.push({ number, seq })
    if (this.ascending) return places
    return places.sort((a, b) => a.number - b.number).slice(from)
  }

  /** Take over what a commit changed; `seq` is its row's position. Gives whether it did nothing but append items. */
  apply(
    seq: number,
    record: Pick<CommitRecord, 'changes'>,
    objects?: ReadonlyMap<number, Uint8Array>,
  ): boolean {
    let appends = true
    for (const change of record.changes) {
      if (change.kind === 'item') {
        if (change.number <= this.highest) appends = false
        this.setItem(change.number, { seq, object: objects?.get(change.number) })
      } else if (change.kind !== 'counter') {
        appends = false
        this.applyOther(seq, change)
      } else {
        this.counter = change.value
      }
    }
    return appends
  }

  /** The state's id. `fields` reads the nodes whose object's id is not known yet, by the rows that set them. */
  async id(fields: (missing: MissingNode[]) => Promise<NodeFields[]>): Promise<Buffer> {
    const missing: (MissingNode & { id: string; slot: Slot })[] = []
    for (const [number, slot] of this.itemSlots) {
      if (slot.object === undefined)
        missing.push({ key: number, seq: slot.seq, id: itemId(this.prefix, number), slot })
    }
    for (const [id, slot] of this.nodeSlots) {
      if (slot.object === undefined) missing.push({ key: id, seq: slot.seq, id, slot })
    }
    if (missing.length > 0) {
      const found = await fields(missing)
      for (const [index, { id, slot }] of missing.entries())
        slot.object = nodeObjectId(id, found[index] as NodeFields)
    }
    return objectId(encodeState(this.objects()))
  }

  private *objects(): Generator<[string, Uint8Array]> {
    if (this.counter !== undefined) {
      const id = counterId(this.prefix)
      yield [id, objectId(encodeNode(id, { content: String(this.counter) }))]
    }
    for (const [number, { object }] of this.itemSlots)
      yield [itemId(this.prefix, number), object as Uint8Array]
    for (const [id, { object }] of this.nodeSlots) yield [id, object as Uint8Array]
  }

  private applyOther(seq: number, change: Exclude<Change, { kind: 'item' | 'counter' }>): void {
    switch (change.kind) {
      case 'remove':
        for (let number = change.from; number < change.from + change.count; number++) this.removeItem(number)
        break
      case 'remove_counter':
        this.counter = undefined
        break
      case 'node':
        this.nodeSlots.set(change.id, { seq, object: undefined })
        break
      case 'remove_node':
        this.nodeSlots.delete(change.id)
        break
      case 'redacted':
        this.setItem(change.number, { seq, object: change.object })
        break
    }
  }

  private setItem(number: number, slot: Slot): void {
    if (number > this.highest) this.highest = number
    else if (!this.itemSlots.has(number)) this.ascending = false
    this.itemSlots.set(number, slot)
  }

  private removeItem(number: number): void {
    this.itemSlots.delete(number)
    if (this.itemSlots.size === 0) {
      this.highest = -1
      this.ascending = true
    } else if (number === this.highest) {
      this.highest = -1
      for (const live of this.itemSlots.keys()) if (live > this.highest) this.highest = live
    }
  }
}

/** A node whose fields have to be read: its number or id, and the row that set it. */
export interface MissingNode {
  key: number | string
  seq: number
}

/** The change of a commit that set this item or node. */
export function findChange(
  record: CommitRecord,
  key: number | string,
): Extract<Change, { kind: 'item' | 'node' | 'redacted' }> | undefined {
  for (const change of record.changes) {
    if ((change.kind === 'item' || change.kind === 'redacted') && change.number === key) return change
    if (change.kind === 'node' && change.id === key) return change
  }
  return undefined
}
