import { decode, encode } from './codec.ts'
import { MnemError } from './errors.ts'
import { objectId, toHex } from './id.ts'

/**
 * The ordered keys of what is derived from the rows for speed. All of it can be made again from them.
 *
 *     'c' id[8] seq[6]              -> ''              a commit by its id's first bytes
 *     'i' number[5] line[4] depth[5] -> [seq, set]     a commit that set or removed an item
 *     'm' line[4] depth[5]           -> [seq, line, depth] a merge, and the place of its second parent
 *     'p' object[32]                -> [number, author, time, reason]  an object whose content was purged
 *                                      (of all memories together, under memory 0: [number, time])
 *     'k' hash[16]                  -> seq | [digest] | [digest, seq]
 *                                      an idempotency key; a digest where no commit was due, or another's was there
 */
const COMMIT = 0x63
const ITEM = 0x69
const REQUEST = 0x6b
const MERGE = 0x6d
const PURGED = 0x70

/** In place of a memory: what is kept of all of them, beyond their end. */
export const EVERY_MEMORY = 0

const ID_PREFIX = 8
const LARGEST_LINE = 0xffffffff
const LARGEST_DEPTH = 0xffffffffff

/** Depth is kept in five bytes: any depth that a line can have is below this. */
export const MAX_DEPTH_ON_LINE = LARGEST_DEPTH

export function commitKey(id: Uint8Array, seq: number): Buffer {
  const key = Buffer.alloc(1 + ID_PREFIX + 6)
  key[0] = COMMIT
  key.set(id.subarray(0, ID_PREFIX), 1)
  key.writeUIntBE(seq, 1 + ID_PREFIX, 6)
  return key
}

export function commitKeySeq(key: Uint8Array): number {
  return Buffer.from(key).readUIntBE(1 + ID_PREFIX, 6)
}

/** The range of keys of commits whose id may start with these hex digits (as far as the key holds them). */
export function commitRange(hexPrefix: string): [from: Buffer, to: Buffer] {
  const digits = hexPrefix.slice(0, ID_PREFIX * 2)
  const low = Buffer.from(digits.padEnd(ID_PREFIX * 2, '0'), 'hex')
  const high = Buffer.from(digits.padEnd(ID_PREFIX * 2, 'f'), 'hex')
  return [
    Buffer.concat([Buffer.of(COMMIT), low]),
    Buffer.concat([Buffer.of(COMMIT), high, Buffer.alloc(7, 0xff)]),
  ]
}

export function itemKey(number: number, line: number, depth: number): Buffer {
  const key = Buffer.alloc(15)
  key[0] = ITEM
  key.writeUIntBE(number, 1, 5)
  key.writeUInt32BE(Math.min(line, LARGEST_LINE), 6)
  key.writeUIntBE(Math.min(depth, LARGEST_DEPTH), 10, 5)
  return key
}

export function itemValue(seq: number, set: boolean): Buffer {
  return encode([seq, set])
}

export function readItemValue(value: Uint8Array): { seq: number; set: boolean } {
  const [seq, set] = decode(value) as [number, boolean]
  return { seq, set }
}

export function mergeKey(line: number, depth: number): Buffer {
  const key = Buffer.alloc(10)
  key[0] = MERGE
  key.writeUInt32BE(Math.min(line, LARGEST_LINE), 1)
  key.writeUIntBE(Math.min(depth, LARGEST_DEPTH), 5, 5)
  return key
}

export function mergeValue(seq: number, line: number, depth: number): Buffer {
  return encode([seq, line, depth])
}

export function readMergeValue(value: Uint8Array): { line: number; depth: number } {
  const [, line, depth] = decode(value) as [number, number, number]
  return { line, depth }
}

export function purgedKey(object: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(PURGED), object])
}

/** The range of keys of purged objects. */
export function purgedRange(): [from: Buffer, to: Buffer] {
  return [Buffer.of(PURGED), Buffer.of(PURGED + 1)]
}

/** The object that a key of `purgedRange` is of. */
export function purgedObject(key: Uint8Array): Uint8Array {
  return key.subarray(1)
}

/** The range of keys of the commits that set an item of this number or removed it, on any line. */
export function itemRange(number: number): [from: Buffer, to: Buffer] {
  return [itemKey(number, 0, 0), itemKey(number + 1, 0, 0)]
}

/** Where everything stands that is derived from rows alone. */
export function derivedRanges(): [from: Buffer, to: Buffer][] {
  return [COMMIT, ITEM, MERGE].map((kind) => [Buffer.of(kind), Buffer.of(kind + 1)])
}

/** The row that an entry was derived from; undefined where it does not say one. */
export function entrySeq({ key, value }: { key: Uint8Array; value: Uint8Array }): number | undefined {
  if (key[0] === COMMIT) return key.length === 1 + ID_PREFIX + 6 ? commitKeySeq(key) : undefined
  const fields = decode(value)
  return Array.isArray(fields) && typeof fields[0] === 'number' ? fields[0] : undefined
}

export function requestKey(key: string): Buffer {
  return Buffer.concat([Buffer.of(REQUEST), objectId(Buffer.from(key)).subarray(0, 16)])
}

/** The key behind every key that starts with this one. */
export function after(key: Uint8Array): Buffer {
  return Buffer.concat([key, Buffer.of(0)])
}

export function corruptIndex(problem: string, id: Uint8Array): MnemError {
  return new MnemError(
    'corrupt_store',
    `An index of the store is damaged: ${problem}. Restore it from a backup; nothing was changed.`,
    {
      object: toHex(id),
      problem,
    },
  )
}
