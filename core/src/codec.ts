import { MnemError } from './errors.ts'
import { Float } from './json.ts'

/**
 * Canonical CBOR as format.md narrows it: definite lengths, shortest integers and floats, text keys sorted by their
 * encoded bytes, no tags. One value has one encoding; decoding refuses every other one as `corrupt_store`.
 */
export type CborValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | Float
  | Uint8Array
  | readonly CborValue[]
  | ReadonlyMap<string, CborValue>

const UINT = 0
const NEGATIVE = 1
const BYTES = 2
const TEXT = 3
const ARRAY = 4
const MAP = 5

/** Deeper than any object of ours: nodes hold content of at most 100 levels. */
const MAX_NESTING = 128

/** Encode a value. A `number` must be a safe integer; floats come as `Float`. Throws `RangeError` for what has no form. */
export function encode(value: CborValue): Buffer {
  const writer = new Writer()
  writer.value(value)
  return writer.finish()
}

/** Decode exactly one canonical value that fills `bytes`. Throws `MnemError` `corrupt_store` for anything else. */
export function decode(bytes: Uint8Array): CborValue {
  const reader = new Reader(bytes)
  const value = reader.value(0)
  if (reader.at !== bytes.length) throw notCanonical('bytes follow the value')
  return value
}

/** The bytes of a head: major type and argument in its shortest form. */
export function encodeHead(major: number, argument: number): Buffer {
  const writer = new Writer(16)
  writer.head(major, argument)
  return writer.finish()
}

export const MAJOR_BYTES = BYTES
export const MAJOR_MAP = MAP

/** Compare keys as canonical CBOR sorts them: the shorter first, then bytewise. */
export function compareKeys(a: Uint8Array, b: Uint8Array): number {
  return a.length - b.length || Buffer.compare(a, b)
}

class Writer {
  private buffer: Buffer
  private length = 0

  constructor(size = 512) {
    this.buffer = Buffer.allocUnsafe(size)
  }

  finish(): Buffer {
    return this.buffer.subarray(0, this.length)
  }

  value(value: CborValue): void {
    switch (typeof value) {
      case 'string':
        this.text(value)
        break
      case 'number':
        this.integer(value)
        break
      case 'bigint':
        this.bigInteger(value)
        break
      case 'boolean':
        this.byte(value ? 0xf5 : 0xf4)
        break
      default:
        this.composite(value)
    }
  }

  head(major: number, argument: number): void {
    const type = major << 5
    this.reserve(9)
    if (argument < 24) {
      this.buffer[this.length++] = type | argument
    } else if (argument < 0x100) {
      this.buffer[this.length++] = type | 24
      this.buffer[this.length++] = argument
    } else if (argument < 0x10000) {
      this.buffer[this.length++] = type | 25
      this.length = this.buffer.writeUInt16BE(argument, this.length)
    } else if (argument < 0x100000000) {
      this.buffer[this.length++] = type | 26
      this.length = this.buffer.writeUInt32BE(argument, this.length)
    } else {
      this.buffer[this.length++] = type | 27
      this.length = this.buffer.writeBigUInt64BE(BigInt(argument), this.length)
    }
  }

  private composite(value: Exclude<CborValue, string | number | bigint | boolean>): void {
    if (value === null) this.byte(0xf6)
    else if (value instanceof Float) this.float(value.value)
    else if (value instanceof Uint8Array) {
      this.head(BYTES, value.length)
      this.raw(value)
    } else if (value instanceof Map) this.map(value)
    else {
      const array = value as readonly CborValue[]
      this.head(ARRAY, array.length)
      for (const element of array) this.value(element)
    }
  }

  private text(value: string): void {
    const size = Buffer.byteLength(value)
    this.head(TEXT, size)
    this.reserve(size)
    this.length += this.buffer.write(value, this.length)
  }

  private map(map: ReadonlyMap<string, CborValue>): void {
    const keys = Array.from(map.keys(), (key) => ({ key, bytes: Buffer.from(key) }))
    keys.sort((a, b) => compareKeys(a.bytes, b.bytes))
    this.head(MAP, keys.length)
    for (const { key, bytes } of keys) {
      this.head(TEXT, bytes.length)
      this.raw(bytes)
      this.value(map.get(key) as CborValue)
    }
  }

  private integer(value: number): void {
    if (!Number.isSafeInteger(value)) throw new RangeError('a plain number must be a safe integer')
    if (value >= 0) this.head(UINT, value)
    else this.head(NEGATIVE, -1 - value)
  }

  private bigInteger(value: bigint): void {
    if (value > -(2n ** 53n) && value < 2n ** 53n) {
      this.integer(Number(value))
      return
    }
    if (value < -(2n ** 63n) || value >= 2n ** 64n)
      throw new RangeError('an integer must lie in -2^63 to 2^64-1')
    this.byte(value >= 0n ? 0x1b : 0x3b)
    this.reserve(8)
    this.length = this.buffer.writeBigUInt64BE(value >= 0n ? value : -1n - value, this.length)
  }

  private float(value: number): void {
    if (!Number.isFinite(value)) throw new RangeError('a float must be finite')
    const half = halfBits(value)
    this.reserve(9)
    if (half !== undefined) {
      this.buffer[this.length++] = 0xf9
      this.length = this.buffer.writeUInt16BE(half, this.length)
    } else if (Math.fround(value) === value) {
      this.buffer[this.length++] = 0xfa
      this.length = this.buffer.writeFloatBE(value, this.length)
    } else {
      this.buffer[this.length++] = 0xfb
      this.length = this.buffer.writeDoubleBE(value, this.length)
    }
  }

  private byte(byte: number): void {
    this.reserve(1)
    this.buffer[this.length++] = byte
  }

  private raw(bytes: Uint8Array): void {
    this.reserve(bytes.length)
    this.buffer.set(bytes, this.length)
    this.length += bytes.length
  }

  private reserve(size: number): void {
    const needed = this.length + size
    if (needed <= this.buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(needed, this.buffer.length * 2))
    this.buffer.copy(grown, 0, 0, this.length)
    this.buffer = grown
  }
}

const FLOAT_BITS = new DataView(new ArrayBuffer(4))

/** The 16 bits of a half float that keeps `value` and its sign exactly; undefined where there is none. */
function halfBits(value: number): number | undefined {
  if (Math.fround(value) !== value) return undefined
  FLOAT_BITS.setFloat32(0, value)
  const bits = FLOAT_BITS.getUint32(0)
  const sign = (bits >>> 16) & 0x8000
  const exponent = ((bits >>> 23) & 0xff) - 127
  const mantissa = bits & 0x7fffff
  if (value === 0) return sign
  if (exponent > 15) return undefined
  if (exponent >= -14)
    return mantissa & 0x1fff ? undefined : sign | ((exponent + 15) << 10) | (mantissa >>> 13)
  const units = Math.abs(value) * 2 ** 24
  return Number.isInteger(units) ? sign | units : undefined
}

function halfValue(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 31
  const mantissa = bits & 1023
  if (exponent === 0) return sign * mantissa * 2 ** -24
  if (exponent === 31) return Number.NaN
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15)
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

class Reader {
  private readonly bytes: Buffer
  at = 0

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  value(depth: number): CborValue {
    if (depth > MAX_NESTING) throw notCanonical('nests too deep')
    const initial = this.byte()
    const major = initial >> 5
    const info = initial & 31
    switch (major) {
      case UINT:
        return this.argument(info)
      case NEGATIVE:
        return this.negative(info)
      case BYTES:
        return Buffer.from(this.take(this.size(info)))
      case TEXT:
        return this.text(info)
      case ARRAY:
        return this.array(info, depth)
      case MAP:
        return this.map(info, depth)
      case 7:
        return this.simple(info)
      default:
        throw notCanonical('a tag')
    }
  }

  private argument(info: number): number | bigint {
    if (info < 24) return info
    let value: number | bigint
    if (info === 24) value = this.least(this.byte(), 24)
    else if (info === 25) value = this.least(this.take(2).readUInt16BE(), 0x100)
    else if (info === 26) value = this.least(this.take(4).readUInt32BE(), 0x10000)
    else if (info === 27) {
      const wide = this.take(8).readBigUInt64BE()
      if (wide < 0x100000000n) throw notCanonical('a length or integer that is not in its shortest form')
      value = wide <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(wide) : wide
    } else throw notCanonical('an indefinite or reserved length')
    return value
  }

  private least(value: number, least: number): number {
    if (value < least) throw notCanonical('a length or integer that is not in its shortest form')
    return value
  }

  private negative(info: number): number | bigint {
    const argument = this.argument(info)
    const value = -1n - BigInt(argument)
    if (value < -(2n ** 63n)) throw notCanonical('an integer below -2^63')
    return value >= BigInt(Number.MIN_SAFE_INTEGER) ? Number(value) : value
  }

  private size(info: number): number {
    const size = this.argument(info)
    if (typeof size === 'bigint' || size > this.bytes.length - this.at)
      throw notCanonical('a length past the end')
    return size
  }

  private text(info: number): string {
    const bytes = this.take(this.size(info))
    try {
      return UTF8.decode(bytes)
    } catch {
      throw notCanonical('text that is not UTF-8')
    }
  }

  private array(info: number, depth: number): CborValue[] {
    const size = this.size(info)
    const array: CborValue[] = []
    for (let i = 0; i < size; i++) array.push(this.value(depth + 1))
    return array
  }

  private map(info: number, depth: number): Map<string, CborValue> {
    const size = this.size(info)
    const map = new Map<string, CborValue>()
    let previous: Buffer | undefined
    for (let i = 0; i < size; i++) {
      const head = this.byte()
      if (head >> 5 !== TEXT) throw notCanonical('a map key that is not text')
      const start = this.at
      const key = this.text(head & 31)
      const bytes = this.bytes.subarray(start, this.at)
      // Between keys of one length class the heads are equal, so comparing head and text together sorts as encoded.
      if (previous !== undefined && compareKeys(previous, bytes) >= 0)
        throw notCanonical('map keys out of order')
      previous = bytes
      map.set(key, this.value(depth + 1))
    }
    return map
  }

  private simple(info: number): CborValue {
    if (info === 20) return false
    if (info === 21) return true
    if (info === 22) return null
    if (info < 25 || info > 27) throw notCanonical('a simple value that JSON does not have')
    let value: number
    if (info === 25) value = halfValue(this.take(2).readUInt16BE())
    else if (info === 26) value = this.take(4).readFloatBE()
    else value = this.take(8).readDoubleBE()
    if (!Number.isFinite(value)) throw notCanonical('a float that is not finite')
    if (info > 25 && halfBits(value) !== undefined)
      throw notCanonical('a float that is not in its shortest form')
    if (info === 27 && Math.fround(value) === value)
      throw notCanonical('a float that is not in its shortest form')
    return new Float(value)
  }

  private byte(): number {
    return this.take(1)[0] as number
  }

  private take(size: number): Buffer {
    if (size > this.bytes.length - this.at) throw notCanonical('the bytes end inside a value')
    this.at += size
    return this.bytes.subarray(this.at - size, this.at)
  }
}

function notCanonical(problem: string): MnemError {
  return new MnemError('corrupt_store', `Stored bytes are not canonical CBOR: ${problem}.`, { problem })
}
