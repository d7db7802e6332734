import { describe, expect, it } from 'vitest'
import { add, forget, initialize, log, type Method, problemOf, query, updateContext } from '../src/index.ts'
import { received } from './raw.ts'

const text = { type: 'text', text: 'a' }
const item = (change: object) => ({
  memory: 'm',
  items: [{ content: text, mime_type: 'text/plain', ...change }],
})

function problem({ params }: Method, value: unknown) {
  const result = params.safeParse(received(value))
  return result.success ? undefined : problemOf(result.error)
}

describe('what is wrong with params', () => {
  it.each<[string, Method, unknown, string, RegExp]>([
    ['an unknown field', add, { ...item({}), memmory: 'm' }, 'memmory', /no field/],
    ['an unknown field of an item', add, item({ mime: 1 }), 'items[0].mime', /no field/],
    ['an odd key', add, item({ 'a b': 1 }), 'items[0]["a b"]', /no field/],
    ['a missing field', add, { memory: 'm' }, 'items', /missing/],
    ['no items', add, { memory: 'm', items: [] }, 'items', /empty/],
    ['an unknown tag', add, item({ content: { type: 'jpeg' } }), 'items[0].content.type', /"json"/],
    [
      'content of the wrong type',
      add,
      item({ content: { ...text, text: 1 } }),
      'items[0].content.text',
      /string/,
    ],
    ['content that is no object', add, item({ content: 'a' }), 'items[0].content', /object/],
    [
      'a list as json',
      add,
      item({ content: { type: 'json', json: [1] } }),
      'items[0].content.json',
      /object/,
    ],
    ['a list as metadata', add, item({ metadata: [1] }), 'items[0].metadata', /object/],
    ['unknown provenance', add, item({ provenance: { by: 'x' } }), 'items[0].provenance.by', /no field/],
    ['null provenance', add, item({ provenance: { note: null } }), 'items[0].provenance.note', /string/],
    ['half a millisecond', add, item({ event_time: 0.5 }), 'items[0].event_time', /whole number/],
    ['a time before 1970', add, { ...item({}), time: -1 }, 'time', /at least 0/],
    ['an empty key', add, { ...item({}), idempotency_key: '' }, 'idempotency_key', /empty/],
    ['a long author', add, { ...item({}), author: 'é'.repeat(128) }, 'author', /255/],
    ['a long message', add, { ...item({}), message: 'a'.repeat(65_537) }, 'message', /65536/],
    ['no ids', forget, { memory: 'm', ids: [] }, 'ids', /empty/],
    ['a commit-ish that is none', query, { memory: 'm', at: true }, 'at', /commit-ish/],
    ['a short id where a full one is needed', log, { memory: 'm', after: '12ab' }, 'after', /64/],
    ['a limit of nothing', log, { memory: 'm', limit: 0 }, 'limit', /at least 1/],
    ['a limit too high', log, { memory: 'm', limit: 10_001 }, 'limit', /at most 10000/],
    ['a negative budget', updateContext, { memory: 'm', max_items: -1 }, 'max_items', /at least 0/],
    [
      'a client without version',
      initialize,
      { protocol: 1, client: { name: 'c' } },
      'client.version',
      /missing/,
    ],
    ['params by position', add, ['m'], '', /object/],
  ])('%s', (_what, method, value, path, reason) => {
    const found = problem(method, value)
    expect(found?.path).toBe(path)
    expect(found?.reason).toMatch(reason)
  })

  it.each([
    ['empty', ''],
    ['256 bytes', 'é'.repeat(128)],
    ['a control character', 'a\u0000'],
    ['a C1 control character', 'a\u0085'],
    ['DEL', '\u007f'],
    ['half a surrogate pair', 'a\ud800b'],
  ])('a name with %s', (_what, memory) => {
    expect(problem(query, { memory })?.path).toBe('memory')
  })

  it.each([
    ['255 bytes', 'a'.repeat(255)],
    ['255 bytes in pairs', `${'😀'.repeat(63)}abc`],
    ['a path', '../../etc/passwd'],
    ['another script', '記憶'],
  ])('takes a name with %s', (_what, memory) => {
    expect(problem(query, { memory })).toBeUndefined()
  })

  it('says nothing of the values themselves', () => {
    const secret = { ...item({ content: { type: 'text', text: 'a', secret: 'hunter2' } }), time: 'hunter2' }
    expect(JSON.stringify(problem(add, secret))).not.toContain('hunter2')
  })
})
