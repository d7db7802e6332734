import { PassThrough } from 'node:stream'
import { JsonText, MnemError } from '@mnem/core'
import { METHODS } from '@mnem/protocol'
import { describe, expect, it } from 'vitest'
import { HELLO, request, textItem } from './frames.ts'
import { SessionPeer } from './session-peer.ts'

const ADD = { memory: 'm', items: [textItem('a')] }
const READ = { memory: 'm' }

describe('a session', () => {
  it('refuses everything before initialize', async () => {
    const peer = new SessionPeer().read()
    peer.send([1, 'ping'], [2, 'add', ADD], [3, 'nonsense'], [4, 'shutdown'])
    for (const id of [1, 2, 3, 4]) expect(await peer.kind(id)).toBe('not_initialized')
    expect(peer.stores.calls).toEqual([])
  })

  it('takes requests right behind initialize', async () => {
    const peer = new SessionPeer().read()
    peer.input.write(Buffer.concat([HELLO, request(1, 'ping')]))
    expect((await peer.answer(1)).result.time).toBeTypeOf('number')
  })

  it('tells who it is and what it takes', async () => {
    const peer = await new SessionPeer().hello()
    expect((await peer.answer('hello')).result).toEqual({
      protocol: 1,
      server: { name: 'mnem-sidecar', version: '1.2.3' },
      capabilities: [
        'memory',
        'log',
        'stats',
        'history',
        'branches',
        'merge',
        'verify',
        'transfer',
        'backup',
        'delete',
        'purge',
      ],
      limits: {
        frame_bytes: 33554432,
        item_bytes: 8388608,
        items_per_add: 10000,
        name_bytes: 255,
        json_depth: 100,
      },
    })
  })

  it('refuses another version of the protocol, whatever its params are, and takes a second try', async () => {
    const peer = new SessionPeer().read()
    peer.send([1, 'initialize', { protocol: 2, agent: 'new' }])
    expect((await peer.answer(1)).error).toMatchObject({ code: -32003, data: { supported: [1] } })
    await peer.hello()
  })

  it('refuses an initialize that is wrong, and a second one', async () => {
    const peer = new SessionPeer().read()
    peer.send([1, 'initialize'], [2, 'initialize', { protocol: '1' }])
    expect(await peer.kind(1)).toBe('invalid_params')
    expect((await peer.answer(2)).error?.data).toMatchObject({ kind: 'invalid_params', path: 'protocol' })
    await peer.hello()
    peer.send([3, 'initialize', { protocol: 1, client: { name: 'a', version: '1' } }])
    expect(await peer.kind(3)).toBe('invalid_request')
  })

  it('answers a method that is not there, or not served, with a sentence', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([0, 'constructor'], [1, '$/nonsense'])
    expect(await peer.kind(0)).toBe('method_not_found')
    expect(await peer.kind(1)).toBe('method_not_found')
    for (const [name, { served, method }] of METHODS) {
      if (served || method.result === null) continue
      peer.send([name, name, {}])
      const { error } = await peer.answer(name)
      expect(error).toMatchObject({ code: -32601, data: { kind: 'method_not_found', retryable: false } })
      expect(error?.message).toContain(name)
    }
  })

  it('shuts down once everything before is answered, and takes nothing after', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'add', ADD], [2, 'shutdown'], [3, 'query', READ])
    expect((await peer.answer(3)).error).toMatchObject({ code: -32018, data: { retryable: true } })
    const call = await peer.stores.nth(0)
    expect(peer.inbox.answers.some(({ id }) => id === 2)).toBe(false)
    call.resolve()
    expect((await peer.answer(2)).result).toBeNull()
    const order = peer.inbox.answers.map(({ id }) => id)
    expect(order.indexOf(1)).toBeLessThan(order.indexOf(2))
    peer.notify('exit')
    expect(await peer.ended).toBe('exit')
  })

  it('answers what it took when the input ends', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'add', ADD])
    peer.input.end()
    expect(await peer.ended).toBe('eof')
    const drained = peer.session.drained()
    const call = await peer.stores.nth(0)
    call.resolve()
    await drained
    expect(peer.inbox.answers.at(-1)?.id).toBe(1)
  })

  it('refuses params by position, and null', async () => {
    const peer = await new SessionPeer().hello()
    peer.input.write(request(1, 'query', ['m']))
    peer.input.write(request(2, 'query', null))
    expect(await peer.kind(1)).toBe('invalid_params')
    expect(await peer.kind(2)).toBe('invalid_params')
  })
})

describe('what the store fails with', () => {
  it.each([
    ['not_found', -32010, false],
    ['invalid_ref', -32011, false],
    ['conflict', -32012, false],
    ['busy', -32013, true],
    ['store_io', -32014, false],
    ['corrupt_store', -32015, false],
    ['too_large', -32016, false],
    ['shutting_down', -32018, true],
  ] as const)('%s reaches the peer as %i', async (kind, code, retryable) => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'add', ADD])
    const { reject } = await peer.stores.nth(0)
    reject(new MnemError(kind, 'A sentence.', { candidates: ['ab'] }))
    expect((await peer.answer(1)).error).toEqual({
      code,
      message: 'A sentence.',
      data: { kind, retryable, candidates: ['ab'] },
    })
  })

  it('a bug is told by a reference only, which the log has beside the trace', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'query', READ])
    const { reject } = await peer.stores.nth(0)
    reject(new TypeError('hunter2 is not a function'))
    const { error } = await peer.answer(1)
    expect(error).toMatchObject({ code: -32603, data: { kind: 'internal' } })
    expect(JSON.stringify(error)).not.toContain('hunter2')
    const line = peer.logLines.find((text) => text.includes(String(error?.data.reference)))
    expect(JSON.parse(line as string)).toMatchObject({ level: 'error', method: 'query' })
    expect(line).toContain('session.test.ts')
  })
})

describe('cancelling', () => {
  it('reaches a write that the store has', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'add', ADD])
    await peer.stores.nth(0)
    peer.notify('$/cancelRequest', { id: 1 })
    expect((await peer.answer(1)).error).toMatchObject({ code: -32800, data: { kind: 'cancelled' } })
  })

  it('in the same breath as the request keeps it from the store', async () => {
    const peer = await new SessionPeer().hello()
    peer.input.cork()
    peer.send([1, 'add', ADD])
    peer.notify('$/cancelRequest', { id: 1 })
    peer.input.uncork()
    expect(await peer.kind(1)).toBe('cancelled')
    expect(peer.stores.calls.filter(({ signal }) => signal?.aborted !== true)).toEqual([])
  })

  it('takes a request out of the line, and lets those behind it pass', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'query', READ], [2, 'add', ADD], [3, 'query', READ])
    await peer.stores.nth(0)
    peer.notify('$/cancelRequest', { id: 2 })
    expect(await peer.kind(2)).toBe('cancelled')
    const third = await peer.stores.nth(1)
    expect(peer.stores.called).toEqual(['listing m', 'listing m'])
    third.resolve()
    await peer.answer(3)
  })

  it('after the commit changes nothing', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'add', ADD])
    const { resolve } = await peer.stores.nth(0)
    resolve()
    peer.notify('$/cancelRequest', { id: 1 })
    expect((await peer.answer(1)).result.ids).toEqual(['m:0000000000'])
  })
})

describe('answers', () => {
  it('over the limit become an error that says how to ask for less', async () => {
    const limits = { frame_bytes: 2000, item_bytes: 1, items_per_add: 1, name_bytes: 1, json_depth: 1 }
    const peer = await new SessionPeer({ limits }).hello()
    peer.send([1, 'query', READ])
    const { resolve } = await peer.stores.nth(0)
    resolve({ items: [new JsonText(`"${'é'.repeat(1000)}"`)] })
    const { error } = await peer.answer(1)
    expect(error).toMatchObject({ code: -32016, data: { kind: 'too_large', limit: 2000 } })
    expect(error?.message).toContain('max_items')
    peer.send([2, 'ping'])
    expect((await peer.answer(2)).error).toBeUndefined()
  })

  it('of one turn go out in one piece', async () => {
    const peer = await new SessionPeer().hello()
    const chunks: Buffer[] = []
    peer.output.on('data', (chunk: Buffer) => chunks.push(chunk))
    const requests = Array.from({ length: 50 }, (_, id): [number, string, object] => [id, 'add', ADD])
    peer.send(...requests)
    await peer.stores.nth(49)
    for (const { resolve } of peer.stores.calls) resolve()
    await peer.inbox.count(51)
    expect(chunks).toHaveLength(1)
  })

  it('that nobody takes stop the reading, and it goes on when they are taken', async () => {
    const output = new PassThrough({ highWaterMark: 1 })
    const peer = new SessionPeer({ output })
    peer.input.write(HELLO)
    const big = new JsonText(`"${'x'.repeat(8 * 1024 * 1024)}"`)
    const count = 40
    for (let id = 0; id < count; id++) peer.send([id, 'query', READ])
    // What is answered without being read is bounded: the store is not asked for what there is no room for.
    let asked = 0
    for (let quiet = 0; quiet < 20; quiet++) {
      const { calls } = peer.stores
      if (calls.length > asked) quiet = 0
      while (asked < calls.length) calls[asked++]?.resolve({ items: [big] })
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(asked).toBeLessThan(16)
    peer.read()
    while (asked < count) (await peer.stores.nth(asked++)).resolve({ items: [big] })
    expect(await peer.inbox.count(count + 1)).toHaveLength(count + 1)
  })

  it('to a peer that is gone are dropped, and the session ends', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'add', ADD])
    const { resolve } = await peer.stores.nth(0)
    peer.output.destroy(new Error('EPIPE'))
    expect(await peer.ended).toBe('output_gone')
    resolve()
    await peer.session.drained()
  })
})

describe('the log', () => {
  it('has one line a request at debug, without what is remembered', async () => {
    const peer = await new SessionPeer().hello()
    peer.logLines.length = 0
    peer.send([1, 'add', { memory: 'm', items: [textItem('hunter2')] }])
    ;(await peer.stores.nth(0)).resolve()
    await peer.answer(1)
    peer.send([2, 'add', { memory: 'm', items: [{ ...textItem('hunter2'), hunter2: 'hunter2' }] }])
    await peer.answer(2)
    expect(peer.logLines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'debug', method: 'add', outcome: 'ok', ms: expect.any(Number) },
      { level: 'debug', method: 'add', outcome: 'invalid_params' },
    ])
    expect(peer.logLines.join()).not.toContain('hunter2')
  })
})

describe('long works', () => {
  it('are done two at a time, and hold up neither reads nor writes', async () => {
    const peer = await new SessionPeer().hello()
    peer.send([1, 'verify', { memory: 'm' }], [2, 'verify', { memory: 'm' }], [3, 'verify', { memory: 'm' }])
    peer.send([4, 'add', { memory: 'm', items: [textItem('x')] }], [5, 'query', { memory: 'n' }])
    await peer.stores.nth(3)
    expect(peer.stores.called).toEqual(['verify m', 'verify m', 'add m', 'listing n'])
    peer.stores.calls[0]?.resolve()
    expect((await peer.stores.nth(4)).method).toBe('verify')
  })
})

it('tells who may write and not read of conflicts without what stands there', async () => {
  const access = { token: 't', verbs: new Set(['write'] as const), memories: ['*'], author: undefined }
  const peer = await new SessionPeer({ admit: () => access }).hello()
  peer.send([1, 'merge', { memory: 'm', from: 'trial' }])
  const item = new JsonText('{"id":"m:0000000000"}')
  const conflict = { id: 'm:0000000000', kind: 'edit/edit', base: item, ours: item, theirs: item }
  ;(await peer.stores.nth(0)).resolve({ status: 'conflicts', conflicts: [conflict] })
  const { result } = await peer.answer(1)
  expect(result.conflicts).toEqual([{ ...conflict, base: null, ours: null, theirs: null }])
})
