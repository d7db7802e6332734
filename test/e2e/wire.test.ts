import { METHODS } from '@mnem/protocol'
import { beforeEach, describe, expect, test } from 'vitest'
import { Daemon } from '../../server/test/daemon.ts'
import { frame, textItem } from '../../server/test/frames.ts'

const memory = 'prefs'
const id = (number: number) => `prefs:${String(number).padStart(10, '0')}`

let daemon: Daemon

beforeEach(async () => {
  daemon = await new Daemon().hello()
})

/** Ask, and check that the answer is what the protocol's schema says. */
async function ask(method: string, params: object = {}) {
  const result = await daemon.result(method, params)
  METHODS.get(method)?.method.result?.parse(result)
  return result
}

/** Send a body as text, so that its JSON is exactly this; gives the answer's text. */
async function askRaw(body: string): Promise<string> {
  const count = daemon.inbox.answers.length
  daemon.write(frame(body))
  await daemon.inbox.count(count + 1)
  return daemon.inbox.texts[count] as string
}

const addRaw = (item: string, rest = '') =>
  askRaw(`{"jsonrpc":"2.0","id":1,"method":"add","params":{"memory":"prefs","items":[${item}]${rest}}}`)

describe('every method over the wire, as its schema says', () => {
  test('add, query, update_context, show, log, why, forget, clear', async () => {
    const first = await ask('add', {
      memory,
      items: [textItem('one'), textItem('two')],
      time: 1000,
      author: 'tester',
    })
    expect(first.ids).toEqual([id(0), id(1)])
    const listing = await ask('query', { memory, query: 'ignored' })
    expect(listing).toMatchObject({ commit: first.commit, count: 2, mode: 'full', epoch: 0, branch: 'main' })
    const have = { commit: first.commit, count: 2, epoch: 0 }
    expect(await ask('query', { memory, have })).toEqual({
      commit: first.commit,
      count: 2,
      epoch: 0,
      branch: 'main',
      mode: 'unchanged',
    })
    await ask('add', {
      memory,
      items: [{ content: { type: 'json', json: { a: [1] } }, mime_type: 'application/json' }],
    })
    expect(await ask('update_context', { memory, have })).toMatchObject({ mode: 'appended', count: 3 })
    expect(await ask('update_context', { memory, max_items: 2, render: true })).toMatchObject({
      omitted: 1,
      text: '\nRelevant memory content (in chronological order):\n1. two\n2. {"a":[1]}\n',
    })
    expect(await ask('show', { memory, at: first.commit })).toMatchObject({
      count: 2,
      commit_info: { id: first.commit, author: 'tester', time: 1000, message: 'add 2 items to prefs' },
    })
    expect((await ask('query', { memory, at: 1000 })).count).toBe(2)
    expect((await ask('log', { memory, limit: 1 })).next).toBeDefined()
    expect((await ask('why', { memory, id: id(1) })).commit.id).toBe(first.commit)
    expect((await ask('forget', { memory, ids: [id(0)] })).forgotten).toBe(1)
    expect((await ask('clear', { memory })).forgotten).toBe(2)
    expect((await ask('log', { memory })).commits).toHaveLength(4)
  })

  test('memories, stats, ping, close', async () => {
    await ask('add', { memory, items: [textItem('one')] })
    await ask('add', { memory: 'other', items: [textItem('one')] })
    expect((await ask('memories')).memories.map(({ name }: { name: string }) => name)).toEqual([
      'other',
      'prefs',
    ])
    expect((await ask('memories', { prefix: 'p' })).memories).toHaveLength(1)
    expect(await ask('stats')).toMatchObject({ memories: 2, commits: 2, schema_version: 1 })
    expect(await ask('stats', { memory })).toMatchObject({ items: 1, commits: 1 })
    await ask('ping')
    expect(await ask('close', { memory })).toBeNull()
    expect((await ask('query', { memory })).count).toBe(1)
  })

  test('a memory that nobody has written reads as an empty one and is not made', async () => {
    expect(await ask('query', { memory })).toMatchObject({ commit: null, count: 0, items: [] })
    expect(await ask('update_context', { memory, render: true })).toMatchObject({ text: '' })
    expect(await ask('show', { memory })).toMatchObject({ commit: null, commit_info: null })
    expect(await ask('log', { memory })).toEqual({ commits: [] })
    expect((await ask('memories')).memories).toEqual([])
  })

  test('a repeated idempotency key gives the first answer, in another daemon too', async () => {
    const request = { memory, items: [textItem('one')], idempotency_key: 'k' }
    const first = await ask('add', request)
    await ask('clear', { memory })
    expect(await ask('add', request)).toEqual({ ...first, replayed: true })
    expect(await daemon.call('add', { ...request, author: 'x' })).toMatchObject({
      error: { data: { kind: 'conflict' } },
    })
  })
})

describe('errors say their kind, and what they know', () => {
  test.each<[string, object, object]>([
    ['forget', { memory, ids: [id(7)] }, { code: -32010, data: { kind: 'not_found', retryable: false } }],
    ['why', { memory, id: id(7) }, { code: -32010, data: { kind: 'not_found' } }],
    ['show', { memory, at: 'abcd' }, { code: -32011, data: { kind: 'invalid_ref', candidates: [] } }],
    ['query', { memory, branch: 'nowhere' }, { code: -32010, data: { kind: 'not_found' } }],
    ['add', { memory, items: [] }, { code: -32602, data: { kind: 'invalid_params', path: 'items' } }],
    [
      'add',
      { memory, items: [textItem('x')], tiem: 1 },
      { code: -32602, data: { kind: 'invalid_params', path: 'tiem' } },
    ],
    ['add', { memory: 'a\nb', items: [textItem('x')] }, { code: -32602, data: { path: 'memory' } }],
    [
      'add',
      { memory, items: [textItem('x'.repeat(9_000_000))] },
      { code: -32016, data: { kind: 'too_large', limit: 8_388_608 } },
    ],
    ['unsubscribe', { memory }, { code: -32601 }],
  ])('%s %.60j', async (method, params, error) => {
    expect((await daemon.call(method, params)).error).toMatchObject(error)
    expect(await ask('stats')).toMatchObject({ commits: 0 })
  })
})

describe('content keeps every letter and digit', () => {
  test('numbers keep their kind, keys their order', async () => {
    const json =
      '{"10":1,"2":1.0,"f":-0.0,"big":9007199254740993,"max":18446744073709551615,"min":-9223372036854775808,"tiny":1e-7,"n":[null,true,""],"__proto__":{"x":1}}'
    await addRaw(
      `{"content":{"type":"json","json":${json}},"mime_type":"application/json","metadata":${json}}`,
    )
    const answer = await askRaw('{"jsonrpc":"2.0","id":2,"method":"query","params":{"memory":"prefs"}}')
    expect(answer).toContain(`"content":{"type":"json","json":${json}}`)
    expect(answer).toContain(`"metadata":${json}`)
  })

  test.each([
    ['18446744073709551616', 'items[0].content.json.a[0]'],
    ['1e999', 'items[0].content.json.a[0]'],
    ['{"k":1,"k":1}', 'items[0].content.json.a[0].k'],
    [`${'['.repeat(99)}${']'.repeat(99)}`, undefined],
  ])('%.40s in it is refused, with its path', async (value, path) => {
    const answer = await addRaw(`{"content":{"type":"json","json":{"a":[${value}]}},"mime_type":"x"}`)
    const { error } = JSON.parse(answer)
    expect(error.data.kind).toBe('invalid_params')
    if (path !== undefined) expect(error.data.path).toBe(path)
    expect(await ask('stats')).toMatchObject({ commits: 0 })
  })
})

describe('half a surrogate pair from a raw peer is refused with its path, and nothing is committed (G17)', () => {
  const content = '"content":{"type":"text","text":"ok"},"mime_type":"x"'
  test.each([
    ['text', '{"content":{"type":"text","text":"a\\ud800b"},"mime_type":"x"}', 'items[0].content.text'],
    [
      'a key',
      '{"content":{"type":"json","json":{"a\\udc00":1}},"mime_type":"x"}',
      'items[0].content.json[""]',
    ],
    [
      'a value',
      '{"content":{"type":"json","json":{"a":["\\ud800"]}},"mime_type":"x"}',
      'items[0].content.json.a[0]',
    ],
    ['metadata', `{${content},"metadata":{"m":"\\ud83d"}}`, 'items[0].metadata.m'],
    ['provenance', `{${content},"provenance":{"note":"\\udfff\\ud800"}}`, 'items[0].provenance.note'],
  ])('in %s', async (_where, item, path) => {
    const { error } = JSON.parse(await addRaw(item))
    expect(error.data).toMatchObject({ kind: 'invalid_params', path })
    expect(error.message).not.toContain('\\ud')
    expect(await ask('stats')).toMatchObject({ memories: 0, commits: 0 })
  })

  test('in the name of the memory', async () => {
    const body =
      '{"jsonrpc":"2.0","id":1,"method":"add","params":{"memory":"a\\ud800","items":[{"content":{"type":"text","text":"ok"},"mime_type":"x"}]}}'
    expect(JSON.parse(await askRaw(body)).error.data).toMatchObject({
      kind: 'invalid_params',
      path: 'memory',
    })
  })

  test('a whole pair, escaped or cut between two writes, stays whole', async () => {
    const body = Buffer.from(
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'add',
        params: { memory, items: [textItem('👩‍👩‍👧')] },
      }),
    )
    const bytes = frame(body)
    const middle = bytes.indexOf(0xf0) + 2
    daemon.write(bytes.subarray(0, middle))
    // A turn of the loop sends the first half by itself; cutting at every byte is server/test/framing.test.ts.
    await new Promise((resolve) => setImmediate(resolve))
    daemon.write(bytes.subarray(middle))
    await daemon.inbox.answer(1)
    await addRaw('{"content":{"type":"text","text":"\\ud83d\\udc69"},"mime_type":"x"}')
    const { items } = await ask('query', { memory })
    expect(items.map((item: { content: { text: string } }) => item.content.text)).toEqual(['👩‍👩‍👧', '👩'])
  })
})
