import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MnemError } from '../src/errors.ts'
import { canonicalJson, Float, JsonText, members, parseJson, readJson, stringifyJson } from '../src/json.ts'
import { jsonValue, spell, spellLoosely } from './arbitrary.ts'

function refusal(text: string): MnemError {
  try {
    parseJson(text)
  } catch (error) {
    if (error instanceof MnemError) return error
    throw error
  }
  throw new Error('was not refused')
}

describe('reading', () => {
  test('any value comes back as it was spelled, however loosely it was sent', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        expect(readJson(spell(value))).toEqual(value)
        expect(canonicalJson(spellLoosely(value)).text).toBe(spell(value))
        expect(canonicalJson(spell(value)).text).toBe(spell(value))
      }),
      { numRuns: 500 },
    )
  })

  test('agrees with JSON.parse on what is JSON at all', () => {
    const near = fc.oneof(
      fc.json(),
      fc.string(),
      fc.json().map((text) => text.slice(1)),
      fc.json().map((text) => `${text} ,`),
    )
    fc.assert(
      fc.property(near, (text) => {
        let legal = true
        try {
          JSON.parse(text)
        } catch {
          legal = false
        }
        try {
          parseJson(text)
          expect(legal).toBe(true)
        } catch (error) {
          if (error instanceof SyntaxError) expect(legal).toBe(false)
          else expect(error).toBeInstanceOf(MnemError)
        }
      }),
      { numRuns: 2000 },
    )
  })

  test.each([
    ['1', '1'],
    ['1.0', '1.0'],
    ['1e3', '1000.0'],
    ['-0', '-0.0'],
    ['-0.0', '-0.0'],
    ['1E-7', '1e-7'],
    ['1e21', '1e+21'],
    ['9007199254740993', '9007199254740993'],
    ['9223372036854775808', '9223372036854775808'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['18446744073709551615', '18446744073709551615'],
    ['1e-999', '0.0'],
    [`0.${'1'.repeat(100_000)}`, '0.1111111111111111'],
  ])('the number %s is kept as %s', (sent, kept) => {
    expect(canonicalJson(sent).text).toBe(kept)
  })

  test('keys keep their order, also those that look like integers', () => {
    expect(canonicalJson('{"b":1,"2":2,"1":3,"a":4}').text).toBe('{"b":1,"2":2,"1":3,"a":4}')
  })

  test.each([
    '01',
    '1.',
    '.5',
    '+1',
    '1e',
    'nul',
    'NaN',
    '-',
    '"\u0000"',
    '"\\x"',
    '"',
    '{"a"}',
    '{"a":1,}',
    '[1,]',
    '[1 2]',
    '',
    '1 1',
    '{a:1}',
  ])('refuses %j as no JSON', (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError)
  })

  test.each([
    ['{"a":{"b":1,"b":2}}', 'a.b'],
    ['{"a":["x","\\ud800"]}', 'a[1]'],
    ['{"a":{"\\udc00":1}}', 'a[""]'],
    ['{"a":18446744073709551616}', 'a'],
    ['{"a":-9223372036854775809}', 'a'],
    ['{"a":[1e400]}', 'a[0]'],
    [`[${'9'.repeat(100_000)}]`, '[0]'],
    [`{"odd key":${'['.repeat(101)}`, `["odd key"]${'[0]'.repeat(99)}`],
  ])('refuses %.40s and names the path', (text, path) => {
    expect(refusal(text)).toMatchObject({ kind: 'invalid_params', data: { path } })
  })

  test('nesting up to the limit is taken', () => {
    const deep = `${'['.repeat(100)}${']'.repeat(100)}`
    expect(canonicalJson(deep).text).toBe(deep)
    expect(() => canonicalJson(`[${deep}]`)).toThrow('deeper than 100')
  })
})

describe('verbatim members', () => {
  const verbatim = (key: string) => key === 'json'

  test('are kept as text, the rest is read', () => {
    const read = parseJson('{"id":1,"json":{"n": 1.0, "json": {"2":1,"1":2}},"list":[{"json":null}]}', {
      verbatim,
    })
    expect(read).toEqual({
      id: 1,
      json: new JsonText('{"n":1.0,"json":{"2":1,"1":2}}'),
      list: [{ json: null }],
    })
  })

  test('are written as they stand', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const text = stringifyJson({ a: [new JsonText(spell(value))], b: undefined, c: 'é\u2028' })
        expect(readJson(text)).toEqual(
          new Map<string, unknown>([
            ['a', [value]],
            ['c', 'é\u2028'],
          ]),
        )
      }),
    )
  })

  test('depth is counted anew inside one', () => {
    const deep = `{"a":${'['.repeat(99)}${']'.repeat(99)}}`
    expect(parseJson(`[[[{"json":${deep}}]]]`, { verbatim })).toEqual([[[{ json: new JsonText(deep) }]]])
  })
})

test('members are found without reading their values', () => {
  fc.assert(
    fc.property(jsonValue, (value) => {
      if (!(value instanceof Map)) return
      const text = spell(value)
      const found = members(text).map(({ key, start, end }) => [key, text.slice(start, end)])
      expect(found).toEqual(Array.from(value, ([key, member]) => [key, spell(member)]))
    }),
  )
})

test('prototype keys are plain data', () => {
  const read = parseJson('{"__proto__":{"polluted":true},"constructor":1}') as Record<string, unknown>
  expect(Object.keys(read)).toEqual(['__proto__', 'constructor'])
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  expect(new Float(1)).not.toEqual(1)
})
