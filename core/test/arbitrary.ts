import fc from 'fast-check'
import { Float, floatText, type JsonValue } from '../src/json.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 10 }),
  fc.constantFrom(
    '',
    '__proto__',
    'constructor',
    '__json__',
    '1',
    '\u0000',
    '\u2028',
    'a"b\\c',
    '\r\n',
    '👩‍👩‍👧',
  ),
)

const integer = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -30, max: 300 }),
  fc
    .bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n })
    .map((value) => (Number.isSafeInteger(Number(value)) ? Number(value) : value)),
)

const float = fc
  .oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.float({ noNaN: true, noDefaultInfinity: true }),
    fc.integer({ min: -70000, max: 70000 }),
    fc.integer({ min: -2048, max: 2048 }).map((units) => units * 2 ** -24),
    fc.constantFrom(-0, 65504, 65505, 2 ** -14, 2 ** -25, 1e21, 5e-324),
  )
  .map((value) => new Float(value))

/** Any JSON value that can be stored, every kind of number in it. */
export const jsonValue: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom<JsonValue>(null, true, false),
    text,
    integer,
    float,
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .uniqueArray(fc.tuple(text, tie('value')), { maxLength: 5, selector: ([key]) => key })
      .map((pairs) => new Map(pairs)),
  ),
})).value

/** A value's JSON, in the spelling that the store keeps. */
export function spell(value: JsonValue): string {
  if (value instanceof Float) return floatText(value.value)
  if (Array.isArray(value)) return `[${value.map(spell).join(',')}]`
  if (value instanceof Map)
    return `{${Array.from(value, ([key, member]) => `${JSON.stringify(key)}:${spell(member)}`).join(',')}}`
  return typeof value === 'bigint' ? String(value) : JSON.stringify(value)
}

/** The same with white space and escapes wherever JSON lets them stand. */
export function spellLoosely(value: JsonValue): string {
  const loose = (inner: string) => ` \n${inner}\t\r`
  const string = (inner: string) =>
    `"${Array.from({ length: inner.length }, (_, i) => `\\u${inner.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`
  if (typeof value === 'string') return string(value)
  if (value instanceof Float && value.value !== 0) return value.value.toExponential()
  if (Array.isArray(value))
    return `[${loose(value.map((element) => loose(spellLoosely(element))).join(','))}]`
  if (value instanceof Map) {
    return `{${loose(Array.from(value, ([key, member]) => `${loose(string(key))}:${loose(spellLoosely(member))}`).join(','))}}`
  }
  return spell(value)
}
