import { blake3 } from '@noble/hashes/blake3.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hash } from '../src/blake3.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

test('the empty input has the hash of the specification', () => {
  expect(hex(hash(new Uint8Array()))).toBe('af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262')
})

test('every length up to five chunks hashes as the library does', () => {
  const input = Uint8Array.from({ length: 5200 }, (_, i) => i % 251)
  for (let length = 0; length <= input.length; length++) {
    const part = input.subarray(0, length)
    if (hex(hash(part)) !== hex(blake3(part))) expect.fail(`length ${length} differs`)
  }
})

test('inputs of any size hash as the library does, and are not changed', () => {
  fc.assert(
    fc.property(fc.nat(300_000), fc.nat(255), (length, seed) => {
      const input = Uint8Array.from({ length }, (_, i) => (i * 31 + seed) & 255)
      const before = hex(blake3(input))
      expect(hex(hash(input))).toBe(before)
      expect(hex(blake3(input))).toBe(before)
    }),
    { numRuns: 40 },
  )
})
