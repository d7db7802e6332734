import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tempDir } from './daemon.ts'
import { frame, request, textItem } from './frames.ts'
import { makeCertificate, makeToken, Server, SocketPeer } from './serving.ts'

const MiB = 1024 * 1024

async function serving(...args: string[]): Promise<{ server: Server; path: string }> {
  const path = join(tempDir(), 'm.sock')
  const server = await Server.start({
    args: ['--listen', `unix:${path}`, '--http', '127.0.0.1:0', ...args],
  })
  return { server, path }
}

describe('connections', () => {
  it('over the limit are told so and closed; when one goes, another may come', async () => {
    const { server, path } = await serving('--max-connections', '3')
    const peers = await Promise.all([1, 2, 3].map(() => new SocketPeer(path).hello()))
    const fourth = new SocketPeer(path)
    expect((await fourth.inbox.answer(null)).error?.data).toMatchObject({ kind: 'busy', retryable: true })
    await fourth.closed
    expect(await server.metric('mnem_connections_refused_total{reason="too_many"}')).toBe(1)
    peers[0]?.socket.end()
    await peers[0]?.closed
    await server.line('connection closed')
    await expect.poll(() => server.metric('mnem_connections{transport="unix"}')).toBe(2)
    await new SocketPeer(path).hello()
  })

  it('over the limit by hundreds cost nothing and disturb nobody', async () => {
    const { server, path } = await serving('--max-connections', '2')
    const peer = await new SocketPeer(path).hello()
    const crowd = Array.from({ length: 400 }, () => new SocketPeer(path, { reading: false }))
    for (const each of crowd) each.socket.resume()
    expect((await peer.result('ping')).ready).toBe(true)
    // One of the crowd may have the second place.
    await expect.poll(() => server.metric('mnem_connections_refused_total{reason="too_many"}')).toBe(399)
    expect((await peer.result('ping')).ready).toBe(true)
  })

  it('over the limit are told so over TLS too', async () => {
    const { certFile, keyFile, cert } = makeCertificate(tempDir(), 'a')
    const tls = ['--listen', 'tls:127.0.0.1:0', '--tls-cert', certFile, '--tls-key', keyFile]
    const { server } = await serving('--max-connections', '1', ...tls)
    await new SocketPeer({ tls: server.port('tls'), ca: cert }).hello()
    const second = new SocketPeer({ tls: server.port('tls'), ca: cert })
    expect((await second.inbox.answer(null)).error?.data.kind).toBe('busy')
    await second.closed
  })

  it('that say nothing are ended in time', async () => {
    const { server, path } = await serving('--initialize-timeout', '200ms')
    const silent = new SocketPeer(path)
    expect((await silent.inbox.answer(null)).error?.data.kind).toBe('not_initialized')
    await silent.closed
    const chatty = new SocketPeer(path)
    expect(await chatty.kind('ping')).toBe('not_initialized')
    await chatty.closed
    await server.line('connection closed', ({ reason }) => reason === 'initialize_timeout')
  })

  it('that are idle are ended, those that are used are not', async () => {
    const { server, path } = await serving('--idle-timeout', '2s')
    const idle = await new SocketPeer(path).hello()
    const used = await new SocketPeer(path).hello()
    const ping = setInterval(() => used.notify('ping'), 100)
    const asking = setInterval(() => void used.result('ping').catch(() => {}), 100)
    await idle.closed
    clearInterval(ping)
    clearInterval(asking)
    await server.line('connection closed', ({ reason }) => reason === 'idle')
    expect((await used.result('ping')).ready).toBe(true)
  })

  it('get a small message only before they are initialized', async () => {
    const { path } = await serving()
    const stranger = new SocketPeer(path)
    stranger.write('Content-Length: 1000000\r\n\r\n')
    expect((await stranger.inbox.answer(null)).error?.data).toMatchObject({
      kind: 'too_large',
      limit: 262_144,
    })
    await stranger.closed
    const peer = await new SocketPeer(path).hello()
    await peer.result('add', { memory: 'm', items: [textItem('x'.repeat(1_000_000))] })
  })

  it('are told the limits in force, which hold', async () => {
    const { path } = await serving('--frame-bytes', '1MiB')
    const peer = new SocketPeer(path)
    const { result } = await peer.initialize()
    expect(result.limits).toMatchObject({ frame_bytes: MiB, item_bytes: MiB / 4 })
    expect(await peer.kind('add', { memory: 'm', items: [textItem('x'.repeat(MiB / 4))] })).toBe('too_large')
    const items = Array.from({ length: 6 }, () => textItem('y'.repeat(150_000)))
    for (let i = 0; i < 2; i++) await peer.result('add', { memory: 'm', items })
    const listing = await peer.result('query', { memory: 'm' })
    expect(listing.more).toBe(true)
    let count = listing.items.length
    for (let part = listing; part.more === true; count += part.items.length) {
      const have = { commit: listing.commit, count, epoch: listing.epoch }
      part = await peer.result('query', { memory: 'm', at: listing.commit, have })
    }
    expect(count).toBe(12)
    peer.write(`Content-Length: ${MiB + 1}\r\n\r\n`)
    expect((await peer.inbox.answer(null)).error?.data.kind).toBe('too_large')
  })
})

describe('a client that takes no answers', () => {
  it('costs no more than its bound whatever it asks, is ended, and disturbs nobody', async () => {
    const { server, path } = await serving(
      '--max-connection-bytes',
      '4MiB',
      '--max-buffered-bytes',
      '16MiB',
      '--stall-timeout',
      '3s',
    )
    const peer = await new SocketPeer(path).hello()
    await peer.result('add', { memory: 'm', items: [textItem('x'.repeat(2 * MiB))] })
    const before = server.residentBytes
    const silent = await new SocketPeer(path).hello()
    silent.socket.pause()
    const asks = Array.from({ length: 1000 }, (_, id) => request(id, 'query', { memory: 'm' }))
    for (let i = 0; i < 100; i++) silent.write(Buffer.concat(asks))
    let peak = 0
    let isOver = false
    const over = server
      .line('connection closed', ({ reason }) => reason === 'stalled')
      .then(() => {
        isOver = true
      })
    while (!isOver) {
      expect((await peer.result('query', { memory: 'm' })).count).toBe(1)
      peak = Math.max(peak, server.residentBytes - before)
    }
    await over
    expect(peak).toBeLessThan(300 * MiB)
  })

  it.each([
    ['ping', {}],
    ['no/such/method', {}],
    ['add', { memory: 'm', items: [] }],
  ])('100,000 requests for %s without reading an answer cost bounded memory', async (method, params) => {
    const { server, path } = await serving('--max-connection-bytes', '2MiB')
    const peer = await new SocketPeer(path).hello()
    const before = server.residentBytes
    const flood = await new SocketPeer(path).hello()
    flood.socket.pause()
    const bytes = Buffer.concat(Array.from({ length: 1000 }, (_, id) => request(id, method, params)))
    for (let i = 0; i < 100; i++) flood.write(bytes)
    // What the server has not read stays with the flood: its writes stop being taken.
    await expect
      .poll(async () => {
        const at = flood.socket.writableLength
        await peer.result('ping')
        return at > 0 && at === flood.socket.writableLength
      })
      .toBe(true)
    expect(server.residentBytes - before).toBeLessThan(150 * MiB)
    // Read at last, every request has its answer.
    flood.socket.resume()
    await flood.inbox.count(100_001)
  })

  it('and many of them together are held to one bound: those that hold most are ended', async () => {
    const { server, path } = await serving('--max-connection-bytes', '8MiB', '--max-buffered-bytes', '16MiB')
    const peer = await new SocketPeer(path).hello()
    await peer.result('add', { memory: 'm', items: [textItem('x'.repeat(4 * MiB))] })
    const before = server.residentBytes
    const silent = await Promise.all(Array.from({ length: 12 }, () => new SocketPeer(path).hello()))
    for (const each of silent) {
      each.socket.pause()
      for (let id = 0; id < 10; id++) each.write(request(id, 'query', { memory: 'm' }))
    }
    await server.line('connection closed', ({ reason }) => reason === 'buffers_full')
    expect((await peer.result('query', { memory: 'm' })).count).toBe(1)
    expect(server.residentBytes - before).toBeLessThan(200 * MiB)
  })
})

describe('a client that sends half a message', () => {
  it('is ended when nothing more comes', async () => {
    const { server, path } = await serving('--stall-timeout', '1s')
    const half = await new SocketPeer(path).hello()
    half.write('Content-Len')
    await half.closed
    await server.line('connection closed', ({ reason }) => reason === 'stalled')
    const body = await new SocketPeer(path).hello()
    body.write('Content-Length: 1000\r\n\r\n{"jsonrpc"')
    await body.closed
  })

  it('and many of them together are held to one bound', async () => {
    const { server, path } = await serving('--max-buffered-bytes', '16MiB')
    const peer = await new SocketPeer(path).hello()
    const halves = await Promise.all(Array.from({ length: 6 }, () => new SocketPeer(path).hello()))
    for (const half of halves) {
      half.write(`Content-Length: ${20 * MiB}\r\n\r\n`)
      half.write(Buffer.alloc(10 * MiB, ' '))
    }
    await server.line('connection closed', ({ reason }) => reason === 'buffers_full')
    expect((await peer.result('ping')).ready).toBe(true)
  })
})

describe('many requests at once', () => {
  it('on one connection are all answered, in any number', async () => {
    const { path } = await serving('--max-in-flight', '10')
    const peer = await new SocketPeer(path).hello()
    const adds = Array.from({ length: 500 }, (_, id) =>
      request(id, 'add', { memory: 'm', items: [textItem(`${id}`)] }),
    )
    peer.write(Buffer.concat(adds))
    await peer.inbox.count(501)
    const { items } = await peer.result('query', { memory: 'm' })
    expect(items.map(({ content }: { content: { text: string } }) => content.text)).toEqual(
      Array.from({ length: 500 }, (_, id) => `${id}`),
    )
  })

  it('of one client do not keep another from being answered', async () => {
    const { path } = await serving()
    const busy = await new SocketPeer(path).hello()
    const items = Array.from({ length: 2000 }, (_, i) => textItem(`${i} ${'x'.repeat(1000)}`))
    await busy.result('add', { memory: 'm', items })
    let answered = 0
    const reads = Array.from({ length: 40 }, () =>
      busy.result('query', { memory: 'm' }).then(() => answered++),
    )
    const other = await new SocketPeer(path).hello()
    await other.result('add', { memory: 'n', items: [textItem('x')] })
    expect(answered).toBeLessThan(40)
    await Promise.all(reads)
  })
})

/** Each is answered with an error or a closed connection, and has one line in the log (G08, on sockets). */
describe('what is no frame', () => {
  const hostile: Array<[string, Buffer | string]> = [
    ['a length past every number', 'Content-Length: 99999999999\r\n\r\n'],
    ['a negative length', 'Content-Length: -5\r\n\r\n'],
    ['a length twice', 'Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}'],
    ['no length', 'Content-Type: application/json\r\n\r\n{}'],
    ['a number with more behind it', 'Content-Length: 12abc\r\n\r\n'],
    ['a header without end', `Content-Type: ${'a'.repeat(200_000)}`],
    ['HTTP', 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'],
    ['a TLS hello', Buffer.from('1603010200010001fc0303', 'hex')],
    ['random bytes', Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919 + 31) % 256))],
    ['zeros', Buffer.alloc(4096)],
    ['JSON without a header', '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'],
    ['invalid UTF-8', frame(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', 'latin1'))],
    ['half a body', frame('{"jsonrpc":')],
  ]

  it.each(hostile)('%s: an error, and the connection ends, on both transports', async (_what, bytes) => {
    const { server, path } = await serving('--listen', 'tcp:127.0.0.1:0')
    const before = server.residentBytes
    const neighbour = await new SocketPeer(path).hello()
    for (const target of [path, server.port('tcp')]) {
      const peer = new SocketPeer(target)
      peer.write(bytes)
      expect((await peer.inbox.answer(null)).error?.data.kind).toMatch(/^(parse_error|too_large)$/)
      await peer.closed
      expect((await neighbour.result('ping')).ready).toBe(true)
    }
    expect(server.stderr.match(/refused a message/g)).toHaveLength(2)
    expect(server.residentBytes - before).toBeLessThan(20 * MiB)
  })

  it('100,000 brackets deep: refused, and the connection goes on', async () => {
    const { path } = await serving()
    const peer = await new SocketPeer(path).hello()
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    peer.write(frame(`{"jsonrpc":"2.0","id":"deep","method":"add","params":{"memory":"m","items":${deep}}}`))
    expect((await peer.inbox.answer('deep')).error?.data.kind).toBe('invalid_params')
    const open = '{"a":'.repeat(100_000)
    peer.write(frame(`{"jsonrpc":"2.0","id":"open","method":"add","params":${open}`))
    expect((await peer.inbox.answer(null)).error?.data.kind).toMatch(/parse_error|invalid_request/)
  })

  it('from a stranger costs no token a look at what is kept', async () => {
    const file = join(tempDir(), 'tokens.json')
    makeToken(file, 'a', '--memory', '*', '--verb', 'read')
    const { path } = await serving('--token-file', file)
    const stranger = new SocketPeer(path)
    for (const method of ['query', 'add', 'memories', 'stats', 'shutdown', 'ping'])
      expect(await stranger.kind(method, { memory: 'm' })).toBe('not_initialized')
  })

  it('a flood of half connections does not keep others out', async () => {
    const { server, path } = await serving('--listen', 'tcp:127.0.0.1:0', '--initialize-timeout', '1s')
    const halves = Array.from({ length: 300 }, () => new SocketPeer(server.port('tcp')))
    for (const half of halves) half.write('Content-Length: 5')
    await (await new SocketPeer(path).hello()).result('ping')
    await Promise.all(halves.map(({ closed }) => closed))
  })
})
