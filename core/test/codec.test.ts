import * as cborg from 'cborg'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type CborValue, decode, encode } from '../src/codec.ts'
import { Float, type JsonValue } from '../src/json.ts'
import { jsonValue } from './arbitrary.ts'

const hex = (text: string) => Buffer.from(text, 'hex')

/**
 * As cborg takes it: a float only where JavaScript can tell it from an integer, and none that only a subnormal half
 * float keeps (cborg 6.1.5 writes those as single floats, the reference as half floats: test/interop).
 */
function forCborg(value: JsonValue): unknown {
  if (value instanceof Float) {
    return Number.isInteger(value.value) || Math.abs(value.value) < 2 ** -14 ? value.value + 0.5 : value.value
  }
  if (Array.isArray(value)) return value.map(forCborg)
  if (value instanceof Map) return new Map(Array.from(value, ([key, member]) => [key, forCborg(member)]))
  return value
}

function fromCborg(value: unknown): CborValue {
  if (typeof value === 'number' && !Number.isInteger(value)) return new Float(value)
  if (Array.isArray(value)) return value.map(fromCborg)
  if (value instanceof Map) return new Map(Array.from(value, ([key, member]) => [key, fromCborg(member)]))
  return value as CborValue
}

describe('encoding', () => {
  test('every value is read back as it was, number kinds and all', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        expect(decode(encode(value))).toEqual(value)
      }),
      { numRuns: 1000 },
    )
  })

  test('gives the bytes that another implementation gives', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const theirs = forCborg(value)
        // A float that lost its fraction to the addition is an integer there.
        fc.pre(!hasUnsafeInteger(theirs))
        expect(encode(fromCborg(theirs)).toString('hex')).toBe(
          Buffer.from(cborg.encode(theirs)).toString('hex'),
        )
      }),
      { numRuns: 1000 },
    )
  })

  test.each([
    [0, '00'],
    [23, '17'],
    [24, '1818'],
    [255, '18ff'],
    [256, '190100'],
    [65535, '19ffff'],
    [65536, '1a00010000'],
    [4294967296, '1b0000000100000000'],
    [-1, '20'],
    [-25, '3818'],
    [-9007199254740991, '3b001ffffffffffffe'],
    [-9007199254740992n, '3b001fffffffffffff'],
    [2n ** 64n - 1n, '1bffffffffffffffff'],
    [-(2n ** 63n), '3b7fffffffffffffff'],
    [new Float(1), 'f93c00'],
    [new Float(-0), 'f98000'],
    [new Float(65504), 'f97bff'],
    [new Float(65505), 'fa477fe100'],
    [new Float(2 ** -24), 'f90001'],
    [new Float(2 ** -25), 'fa33000000'],
    [new Float(1e-7), 'fb3e7ad7f29abcaf48'],
  ])('%s is %s', (value, bytes) => {
    expect(encode(value).toString('hex')).toBe(bytes)
    expect(decode(hex(bytes))).toEqual(value)
  })

  test.each([
    1.5,
    Number.NaN,
    2 ** 53,
    2n ** 64n,
    new Float(Number.POSITIVE_INFINITY),
    new Float(Number.NaN),
  ])('refuses %s, which has no form', (value) => {
    expect(() => encode(value)).toThrow(RangeError)
  })
})

describe('decoding refuses as corrupt_store', () => {
  test.each([
    ['an integer not in its shortest form', '1817'],
    ['a length not in its shortest form', '780161'],
    ['a wide integer that would fit into less', '1b00000000ffffffff'],
    ['a float that fits into half', 'fa3f800000'],
    ['a float that fits into single', 'fb40f86a0000000000'],
    ['NaN', 'f97e00'],
    ['infinity', 'f97c00'],
    ['an indefinite length', '9f01ff'],
    ['a tag', 'c001'],
    ['undefined', 'f7'],
    ['an integer below -2^63', '3b8000000000000000'],
    ['keys out of order', 'a2616201616101'],
    ['the longer key first', 'a262616101616201'],
    ['a key twice', 'a2616101616102'],
    ['a key that is no text', 'a10101'],
    ['text that is not UTF-8', '61ff'],
    ['bytes behind the value', '0000'],
    ['an end inside a value', '82'],
    ['a length past the end', '5bffffffffffffffff'],
    ['nothing', ''],
    ['endless nesting', '81'.repeat(100_000)],
  ])('%s', (_what, bytes) => {
    expect(() => decode(hex(bytes))).toThrow(expect.objectContaining({ kind: 'corrupt_store' }))
  })

  test('or accepts exactly what it would write itself, for any bytes', () => {
    const near = jsonValue.chain((value) => {
      const bytes = encode(value)
      return fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)).map(([at, byte]) => {
        const damaged = Buffer.from(bytes)
        damaged[at] = byte
        return damaged
      })
    })
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 40 }), near), (bytes) => {
        let value: CborValue
        try {
          value = decode(bytes)
        } catch (error) {
          expect(error).toMatchObject({ kind: 'corrupt_store' })
          return
        }
        expect(encode(value).equals(bytes)).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })
})

function hasUnsafeInteger(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value)
  if (Array.isArray(value)) return value.some(hasUnsafeInteger)
  return value instanceof Map && Array.from(value.values()).some(hasUnsafeInteger)
}
