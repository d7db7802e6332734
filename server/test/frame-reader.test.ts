import { PassThrough } from 'node:stream'
import { wireError } from '@mnem/protocol'
import { describe, expect, it } from 'vitest'
import { FrameReader } from '../src/session/frame-reader.ts'
import { frame, notification, request } from './frames.ts'

function open(frameBytes = 1000, onMessage?: () => void) {
  const input = new PassThrough()
  const seen: unknown[] = []
  const reader = new FrameReader(input, frameBytes, {
    take: (id) => {
      seen.push(id)
      return true
    },
    refuse: (id, { data }) => seen.push([id, data.kind]),
    failed: () => wireError('internal', 'A bug.'),
    ended: (reason) => seen.push(reason),
  })
  reader.listen(onMessage ?? ((message) => seen.push(message)))
  return { input, seen }
}

const plain = (value: unknown) => JSON.parse(JSON.stringify(value))

describe('a reader of frames', () => {
  const first = request(1, 'add', { text: 'é漢👩‍👩‍👧\u2028\u0000\r\n' })
  const second = notification('exit', { a: '😀' })
  const both = Buffer.concat([first, second])
  const expected = [1, JSON.parse(first.toString().slice(first.indexOf('{'))), undefined]
  expected[2] = JSON.parse(second.toString().slice(second.toString().indexOf('{')))
  expected[1] = JSON.parse(first.toString('utf8', first.indexOf('{')))

  it('reads two frames cut at every byte', async () => {
    for (let cut = 0; cut <= both.length; cut++) {
      const { input, seen } = open()
      input.emit('data', both.subarray(0, cut))
      input.emit('data', both.subarray(cut))
      expect(plain(seen), `cut at ${cut}`).toEqual(expected)
    }
  })

  it('reads them byte by byte', () => {
    const { input, seen } = open()
    for (const byte of both) input.emit('data', Buffer.from([byte]))
    expect(plain(seen)).toEqual(expected)
  })

  it('cut in three at every pair of places around the headers', () => {
    const places = [
      1,
      14,
      15,
      16,
      17,
      19,
      20,
      21,
      22,
      first.length - 1,
      first.length,
      first.length + 1,
      first.length + 20,
    ]
    for (const a of places) {
      for (const b of places) {
        if (b <= a) continue
        const { input, seen } = open()
        for (const [from, to] of [
          [0, a],
          [a, b],
          [b, both.length],
        ])
          input.emit('data', both.subarray(from, to))
        expect(plain(seen), `cut at ${a} and ${b}`).toEqual(expected)
      }
    }
  })

  it('takes a body of exactly the limit, and none of one byte more', () => {
    const body = `{"jsonrpc":"2.0","method":"a"${' '.repeat(970)}}`
    const { input, seen } = open(1000)
    input.emit('data', frame(body))
    expect(seen).toHaveLength(1)
    input.emit('data', frame(`${body} `))
    expect(seen.slice(1)).toEqual([[null, 'too_large'], 'framing'])
    input.emit('data', frame(body))
    expect(seen).toHaveLength(3)
  })

  it('takes a header of exactly the limit', () => {
    const body = request(1, 'ping').subarray(request(1, 'ping').indexOf('{'))
    const head = (length: number) => {
      const start = `Content-Length: ${body.length}\r\nContent-Type: `
      return `${start}${'a'.repeat(length - start.length - 4)}\r\n\r\n`
    }
    for (const [length, ok] of [
      [4096, true],
      [4097, false],
    ] as const) {
      const { input, seen } = open()
      input.emit('data', Buffer.concat([Buffer.from(head(length)), body]))
      expect(seen.length === 2 && seen[0] === 1, String(length)).toBe(ok)
    }
  })

  it.each([
    'x',
    'Content-Length 5',
    'Content-Length: x',
    'Content-Length: 5x',
    'content-language: en',
    '\n',
    '{',
    'Content-Length: 5\n',
  ])('sees from the first bytes that %j becomes no header', (text) => {
    const { input, seen } = open()
    for (const byte of Buffer.from(text)) input.emit('data', Buffer.from([byte]))
    expect(seen).toEqual([[null, 'parse_error'], 'framing'])
  })
})

it('a bug in what reads ends this connection, and not the process', () => {
  const { input, seen } = open(1000, () => {
    throw new TypeError('a bug')
  })
  input.emit('data', request(1, 'ping'))
  expect(seen).toEqual([1, [null, 'internal'], 'framing'])
})

it.each([
  ['items', '[', 100_000],
  ['one object in another', '{"a":', 100_000],
])('too deep %s that never end are a body that is no JSON', (_what, piece, times) => {
  const { input, seen } = open(10_000_000)
  input.emit('data', frame(`{"jsonrpc":"2.0","id":1,"method":"add","params":${piece.repeat(times)}`))
  expect(seen).toEqual([[null, 'parse_error'], 'framing'])
})
