import { breathe } from './breathe.ts'
import { type NodePlace, type SettingChange, settingObject } from './change-lookup.ts'
import { ID_BYTES, objectId } from './id.ts'
import { counterId, itemId } from './names.ts'
import { encodeKey, encodeNode, encodeState, encodeStateHead, ID_HEAD } from './object.ts'
import type { Change, CommitRecord } from './record.ts'
import { type Entries, StateHash } from './state-hash.ts'

/** Nodes whose fields are read at once. */
const LEARNED = 256

/** Digits of an item's number in its id. */
const DIGITS = 10

/** Where a live node stands: the row that gave it its value, and its object's id once that was needed. */
export interface Slot {
  seq: number
  object: Uint8Array | undefined
  /** Its content was purged. */
  redacted?: true
}

/** An item of a state: its number and the row that set it. */
export interface ItemPlace {
  number: number
  seq: number
}

/** Reads what set nodes, by the rows that did. */
export type ReadSettings = (missing: readonly NodePlace[]) => Promise<SettingChange[]>

/**
 * The live nodes at a commit: numbered items, the counter, and nodes that another tool wrote. Contents are not held,
 * only where they stand.
 */
export class State {
  readonly prefix: string
  private readonly itemSlots = new Map<number, Slot>()
  private readonly nodeSlots = new Map<string, Slot>()
  /** The live items' numbers, ascending. */
  private numbers: number[] = []
  private counter: number | undefined
  /** Live items whose content was purged. */
  private purged = 0
  private readonly hash = new StateHash()
  /** Items before this position are as they were when the state was hashed last. */
  private changedFrom = 0
  /** Whether some slot does not know its object's id. */
  private hasUnknown = false

  constructor(prefix: string) {
    this.prefix = prefix
  }

  /** Live items. */
  get count(): number {
    return this.numbers.length
  }

  /** Live items that have their content still. */
  get whole(): number {
    return this.numbers.length - this.purged
  }

  /** Nodes that are no items and not the counter. */
  get otherNodes(): IterableIterator<string> {
    return this.nodeSlots.keys()
  }

  get isEmpty(): boolean {
    return this.count === 0 && this.nodeSlots.size === 0 && this.counter === undefined
  }

  get hasCounter(): boolean {
    return this.counter !== undefined
  }

  /** What the counter node holds. */
  get counterValue(): number | undefined {
    return this.counter
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
    return this.numbers.slice(from).map((number) => ({ number, seq: this.slot(number).seq }))
  }

  /** The same of the items that have their content still. */
  wholeItems(from = 0): ItemPlace[] {
    if (this.purged === 0) return this.items(from)
    return this.items()
      .filter(({ number }) => this.slot(number).redacted !== true)
      .slice(from)
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

  /** The state's id. `read` gives what set the nodes whose object's id is not known yet, by their rows. */
  async id(read: ReadSettings): Promise<Buffer> {
    if (this.hasUnknown) await this.learnObjects(read)
    // Nodes of other tools may stand anywhere between: too rare to be fast.
    if (this.nodeSlots.size > 0) return objectId(encodeState(this.objects()))
    const counter: [string, Uint8Array][] =
      this.counter === undefined ? [] : [this.counterObject(this.counter)]
    const head = encodeStateHead(this.count + counter.length, counter)
    const prefix = encodeKey(itemId(this.prefix, 0)).subarray(0, -DIGITS)
    const id = this.hash.update(head, this.entries(prefix), this.changedFrom)
    this.changedFrom = this.count
    return id
  }

  private async learnObjects(read: ReadSettings): Promise<void> {
    const missing: (NodePlace & { id: string; slot: Slot })[] = []
    for (const [number, slot] of this.itemSlots) {
      if (slot.object === undefined)
        missing.push({ key: number, seq: slot.seq, id: itemId(this.prefix, number), slot })
    }
    for (const [id, slot] of this.nodeSlots) {
      if (slot.object === undefined) missing.push({ key: id, seq: slot.seq, id, slot })
    }
    for (let start = 0; start < missing.length; start += LEARNED) {
      await breathe()
      const some = missing.slice(start, start + LEARNED)
      const found = await read(some)
      for (const [index, { id, slot }] of some.entries())
        slot.object = settingObject(id, found[index] as SettingChange)
    }
    this.hasUnknown = false
  }

  /** The items as entries of a state's map: all of one size, because numbers have ten digits. */
  private entries(prefix: Buffer): Entries {
    const size = prefix.length + DIGITS + ID_HEAD.length + ID_BYTES
    return {
      count: this.count,
      size,
      write: (from, to) => {
        const out = Buffer.allocUnsafe((to - from) * size)
        let at = 0
        for (let position = from; position < to; position++) {
          const number = this.numbers[position] as number
          at += prefix.copy(out, at)
          at += out.write(String(number).padStart(DIGITS, '0'), at, 'latin1')
          at += ID_HEAD.copy(out, at)
          out.set(this.slot(number).object as Uint8Array, at)
          at += ID_BYTES
        }
        return out
      },
    }
  }

  private *objects(): Generator<[string, Uint8Array]> {
    if (this.counter !== undefined) yield this.counterObject(this.counter)
    for (const [number, { object }] of this.itemSlots)
      yield [itemId(this.prefix, number), object as Uint8Array]
    for (const [id, { object }] of this.nodeSlots) yield [id, object as Uint8Array]
  }

  private counterObject(counter: number): [string, Uint8Array] {
    const id = counterId(this.prefix)
    return [id, objectId(encodeNode(id, { content: String(counter) }, counter))]
  }

  private applyOther(seq: number, change: Exclude<Change, { kind: 'item' | 'counter' }>): void {
    switch (change.kind) {
      case 'remove':
        this.removeItems(change.from, change.count)
        break
      case 'remove_counter':
        this.counter = undefined
        break
      case 'node':
        this.nodeSlots.set(change.id, { seq, object: undefined })
        this.hasUnknown = true
        break
      case 'remove_node':
        this.nodeSlots.delete(change.id)
        break
      case 'redacted':
        this.setItem(change.number, { seq, object: change.object, redacted: true })
        break
    }
  }

  private get highest(): number {
    return this.numbers.at(-1) ?? -1
  }

  private slot(number: number): Slot {
    return this.itemSlots.get(number) as Slot
  }

  private setItem(number: number, slot: Slot): void {
    if (slot.object === undefined) this.hasUnknown = true
    if (number > this.highest) {
      this.numbers.push(number)
    } else {
      const position = this.position(number)
      if (!this.itemSlots.has(number)) this.numbers.splice(position, 0, number)
      this.changedFrom = Math.min(this.changedFrom, position)
    }
    this.forgetPurged(number)
    if (slot.redacted === true) this.purged++
    this.itemSlots.set(number, slot)
  }

  private forgetPurged(number: number): void {
    if (this.itemSlots.get(number)?.redacted === true) this.purged--
  }

  private removeItems(from: number, count: number): void {
    const start = this.position(from)
    const removed = this.numbers.splice(start, this.position(from + count) - start)
    for (const number of removed) {
      this.forgetPurged(number)
      this.itemSlots.delete(number)
    }
    this.changedFrom = Math.min(this.changedFrom, start)
  }

  /** How many live items have a lower number. */
  private position(number: number): number {
    let low = 0
    let high = this.numbers.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.numbers[middle] as number) < number) low = middle + 1
      else high = middle
    }
    return low
  }
}
