import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Daemon, tempDir } from './daemon.ts'
import { frame, HELLO, request, textItem } from './frames.ts'

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

/** G08: each of these is answered within bounds, and nothing is read behind it. */
describe('a frame that is none', () => {
  it.each<[string, Buffer | string, string]>([
    ['a length that is no number', 'Content-Length: abc\r\n\r\n{}', 'parse_error'],
    ['a negative length', 'Content-Length: -5\r\n\r\n{}', 'parse_error'],
    ['a number with more behind it', 'Content-Length: 12abc\r\n\r\n{}', 'parse_error'],
    ['no length', 'Content-Type: application/json\r\n\r\n{}', 'parse_error'],
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}', 'parse_error'],
    ['another charset', 'Content-Length: 2\r\nContent-Type: a; charset=latin1\r\n\r\n{}', 'parse_error'],
    ['a header of another protocol', 'GET / HTTP/1.1\r\n', 'parse_error'],
    ['a line of JSON', `${JSON.stringify(PING)}\n`, 'parse_error'],
    ['bare line feeds', 'Content-Length: 2\n\n{}', 'parse_error'],
    ['an empty body', 'Content-Length: 0\r\n\r\n', 'parse_error'],
    ['a body that is not JSON', frame('{"jsonrpc":'), 'parse_error'],
    ['a body that is not UTF-8', frame(Buffer.from([0x22, 0xc3, 0x28, 0x22])), 'parse_error'],
    ['a surrogate in UTF-8', frame(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), 'parse_error'],
    ['a byte order mark', frame(Buffer.from(`\ufeff${JSON.stringify(PING)}`)), 'parse_error'],
    ['a header without end', `Content-Type: ${'a'.repeat(200_000)}`, 'parse_error'],
    ['a body over the limit', 'Content-Length: 2147483647\r\n\r\n', 'too_large'],
    ['a length past every number', `Content-Length: ${'9'.repeat(15)}\r\n\r\n`, 'too_large'],
  ])('%s: one error, one log line, and an end', async (_what, bytes, kind) => {
    const daemon = await new Daemon().hello()
    daemon.write(bytes)
    daemon.write(request(2, 'ping'))
    const { error } = await daemon.inbox.answer(null)
    expect(error?.data.kind).toBe(kind)
    const { code, stderr } = await daemon.exit
    expect(code).toBe(5)
    expect(daemon.inbox.answers.map(({ id }) => id)).toEqual(['hello', null])
    expect(stderr.match(/refused a message/g)).toHaveLength(1)
  })

  it('names the limit of a frame', async () => {
    const daemon = await new Daemon().hello()
    daemon.write('Content-Length: 33554433\r\n\r\n')
    const { error } = await daemon.inbox.answer(null)
    expect(error?.data).toMatchObject({ limit: 33_554_432, actual: 33_554_433 })
  })

  it('a half frame at the end of the input is answered too', async () => {
    const daemon = await new Daemon().hello()
    daemon.child.stdin.end(request(2, 'ping').subarray(0, -1))
    expect((await daemon.exit).code).toBe(0)
    expect(daemon.inbox.answers[1]).toMatchObject({ id: null, error: { code: -32_700 } })
  })

  it.skipIf(process.platform !== 'linux')('a long header and a promised body take no memory', async () => {
    const daemon = await new Daemon().hello()
    const before = residentBytes(daemon.child.pid as number)
    daemon.write('Content-Length: 33554432\r\n\r\n{')
    daemon.write(Buffer.alloc(100, ' '))
    // The frame above is not whole: what shows that it was read is that nothing behind it is answered.
    const peak = residentBytes(daemon.child.pid as number)
    expect(peak - before).toBeLessThan(20 * 1024 * 1024)
    await daemon.end()
  })
})

function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024
}

describe('JSON that is no request', () => {
  it.each<[string, unknown, number | string | null]>([
    ['a batch', [PING, { ...PING, id: 2 }], null],
    ['an empty batch', [], null],
    ['null', null, null],
    ['a string', 'ping', null],
    ['id null', { ...PING, id: null }, null],
    ['an id that is an object', { ...PING, id: {} }, null],
    ['half an id', { ...PING, id: 1.5 }, null],
    ['an id past 2^53', { ...PING, id: 2 ** 53 }, null],
    ['no version', { id: 1, method: 'ping' }, 1],
    ['another version', { ...PING, jsonrpc: '1.0' }, 1],
    ['no method', { jsonrpc: '2.0', id: 'a' }, 'a'],
    ['a method that is a number', { ...PING, method: 7 }, 1],
    ['an answer', { jsonrpc: '2.0', id: 1, result: 7 }, 1],
  ])('%s: invalid_request, and the connection stays', async (_what, message, id) => {
    const daemon = await new Daemon().hello()
    daemon.write(frame(JSON.stringify(message)))
    expect(await daemon.inbox.answer(id)).toMatchObject({
      error: { code: -32_600, data: { kind: 'invalid_request' } },
    })
    expect((await daemon.call('ping', {})).error).toBeUndefined()
    await daemon.end()
  })

  it('passes over notifications that it does not know, and cancellations of nothing', async () => {
    const daemon = await new Daemon().hello()
    daemon.notify('$/setTrace', { value: 'off' })
    daemon.notify('whatever')
    daemon.notify('$/cancelRequest', { id: 99 })
    daemon.notify('$/cancelRequest')
    daemon.notify('$/cancelRequest', { id: {} })
    expect((await daemon.call('ping')).error).toBeUndefined()
    expect(daemon.inbox.answers.map(({ id }) => id)).toEqual(['hello', 'call 1'])
    expect((await daemon.end()).code).toBe(0)
  })

  it('refuses an id that is in use, and answers the first', async () => {
    const daemon = await new Daemon().hello()
    const add = { memory: 'm', items: [textItem('a')] }
    daemon.write(Buffer.concat([request(1, 'add', add), request('1', 'add', add)]))
    expect((await daemon.inbox.answer(null)).error?.data.kind).toBe('invalid_request')
    expect((await daemon.inbox.answer(1)).result.ids).toEqual(['m:0000000000'])
    expect((await daemon.result('stats', { memory: 'm' })).items).toBe(1)
  })

  it('takes the header in any case, with Content-Type', async () => {
    const daemon = new Daemon()
    const body = HELLO.subarray(HELLO.indexOf('{'))
    daemon.write(
      `content-TYPE: application/vscode-jsonrpc; charset=utf-8\r\nCONTENT-length:${body.length}\r\n\r\n`,
    )
    daemon.write(body)
    expect((await daemon.inbox.answer('hello')).result.protocol).toBe(1)
  })
})

/** G07: bytes are counted, not characters, and frames may be cut anywhere. */
describe('text of every kind', () => {
  const ODD = [
    'é',
    '漢',
    '👩‍👩‍👧',
    '\u2028',
    '\u0000',
    '\r\n',
    'Content-Length: 3\r\n\r\n{}',
    '"\\',
    '\u202eabc',
    '',
  ]

  it('goes round unchanged, a thousand items in one connection', async () => {
    const daemon = await new Daemon().hello()
    const texts = Array.from(
      { length: 1000 },
      (_, i) => `${ODD[i % ODD.length]}${i}${ODD[(i * 7) % ODD.length]}`,
    )
    for (let i = 0; i < 1000; i += 100) {
      daemon.write(
        request(`add ${i}`, 'add', { memory: '記憶', items: texts.slice(i, i + 100).map(textItem) }),
      )
    }
    const { items } = await daemon.result('query', { memory: '記憶' })
    expect(items.map((item: { content: { text: string } }) => item.content.text)).toEqual(texts)
    expect(daemon.inbox.isBetweenFrames).toBe(true)
    await daemon.end()
  })

  it('has the same commit ids in raw UTF-8 and in escapes', async () => {
    const json = { é: '漢', '👩‍👩‍👧': ['\u2028', '\u0000'] }
    const item = {
      content: { type: 'json', json },
      mime_type: 'a',
      metadata: json,
      provenance: { note: 'é👍' },
    }
    const params = {
      memory: '記憶😀',
      author: 'é',
      message: '漢',
      time: 1_760_000_000_000,
      items: [item, textItem(ODD.join())],
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'add', params })
    const escaped = body.replace(
      /[^\x20-\x7e]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    expect(escaped).not.toBe(body)
    const commits = []
    for (const text of [body, escaped]) {
      const daemon = await new Daemon().hello()
      daemon.write(frame(text))
      commits.push((await daemon.inbox.answer(1)).result.commit)
      await daemon.end()
    }
    expect(commits[0]).toMatch(/^[0-9a-f]{64}$/)
    expect(commits[1]).toBe(commits[0])
  })
})

/** G17: a peer without a client's checks. Nothing of such a request is stored. */
describe('half a surrogate pair', () => {
  const at = (change: object) => ({ memory: 'm', items: [{ ...textItem('a'), ...change }] })
  it.each<[string, string, object, string]>([
    ['the name', 'add', { ...at({}), memory: 'a\ud800b' }, 'memory'],
    ['a text', 'add', at({ content: { type: 'text', text: 'a\ud800b' } }), 'items[0].content.text'],
    [
      'a key',
      'add',
      at({ content: { type: 'json', json: { 'a\udfff': 1 } } }),
      'items[0].content.json["a\\udfff"]',
    ],
    [
      'a value',
      'add',
      at({ content: { type: 'json', json: { a: ['\ud83d'] } } }),
      'items[0].content.json.a[0]',
    ],
    ['the metadata', 'add', at({ metadata: { a: { b: '\ud800' } } }), 'items[0].metadata.a.b'],
    ['the provenance', 'add', at({ provenance: { note: '\ud800' } }), 'items[0].provenance.note'],
    ['the name of a read', 'query', { memory: '\ud800' }, 'memory'],
  ])('in %s is refused with its path', async (_what, method, params, path) => {
    const daemon = await new Daemon({ store: tempDir() }).hello()
    const { error } = await daemon.call(method, params)
    expect(error).toMatchObject({ code: -32_602, data: { kind: 'invalid_params' } })
    // A key that no UTF-8 can carry can't be shown as itself either.
    if (!path.includes('udfff')) expect(error?.data.path).toBe(path)
    expect(await daemon.result('stats')).toMatchObject({ memories: 0, commits: 0 })
    await daemon.end()
  })

  it.each<[string, string, string]>([
    ['a key twice', '{"a":1,"a":2}', 'items[0].content.json.a'],
    ['an integer out of range', '{"a":18446744073709551616}', 'items[0].content.json.a'],
    ['a float out of range', '{"a":[0,1e999]}', 'items[0].content.json.a[1]'],
    ['a nest too deep', `{"a":${'['.repeat(100)}${']'.repeat(100)}}`, 'items[0].content.json.a'],
  ])('and %s are refused alike', async (_what, json, path) => {
    const daemon = await new Daemon().hello()
    const params = `{"memory":"m","items":[{"content":{"type":"json","json":${json}},"mime_type":"a"}]}`
    daemon.write(frame(`{"jsonrpc":"2.0","id":1,"method":"add","params":${params}}`))
    const { error } = await daemon.inbox.answer(1)
    expect(error?.data.kind).toBe('invalid_params')
    expect(String(error?.data.path).startsWith(path)).toBe(true)
    expect(await daemon.result('stats')).toMatchObject({ commits: 0 })
    await daemon.end()
  })
})
