import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Daemon, tempDir } from './daemon.ts'
import { request, textItem } from './frames.ts'
import { makeCertificate, makeToken, Server, SocketPeer } from './serving.ts'

const TCP = 'tcp:127.0.0.1:0'

function socketPath(): string {
  return join(tempDir(), 'm.sock')
}

describe('serving', () => {
  it('many clients over several addresses share one store, in one order', async () => {
    const path = socketPath()
    const server = await Server.start({ args: ['--listen', `unix:${path}`, '--listen', TCP] })
    const peers = await Promise.all(
      [path, path, server.port('tcp')].map((target) => new SocketPeer(target).hello()),
    )
    const adds = peers.flatMap((peer, number) =>
      Array.from({ length: 50 }, (_, i) =>
        peer.result('add', { memory: 'm', items: [textItem(`${number} ${i}`)] }),
      ),
    )
    expect(new Set((await Promise.all(adds)).map(({ commit }) => commit)).size).toBe(150)
    const [first, ...others] = await Promise.all(peers.map((peer) => peer.result('query', { memory: 'm' })))
    expect(first.count).toBe(150)
    for (const other of others) expect(other).toEqual(first)
    for (const number of [0, 1, 2]) {
      const own = first.items.map((item: { content: { text: string } }) => item.content.text)
      expect(own.filter((text: string) => text.startsWith(`${number} `))).toEqual(
        Array.from({ length: 50 }, (_, i) => `${number} ${i}`),
      )
    }
  })

  it('and processes of their own on the same directory see the same', async () => {
    const store = tempDir()
    const path = socketPath()
    await Server.start({ store, args: ['--listen', `unix:${path}`] })
    const daemon = await new Daemon({ store }).hello()
    const peer = await new SocketPeer(path).hello()
    await peer.result('add', { memory: 'm', items: [textItem('over a socket')] })
    await daemon.result('add', { memory: 'm', items: [textItem('over a pipe')] })
    expect((await peer.result('query', { memory: 'm' })).count).toBe(2)
    await daemon.end()
  })

  it('ends one connection by itself when its client shuts down, exits or closes its side', async () => {
    const path = socketPath()
    const server = await Server.start({ args: ['--listen', `unix:${path}`] })
    const stays = await new SocketPeer(path).hello()
    const exits = await new SocketPeer(path).hello()
    await exits.result('shutdown')
    exits.notify('exit')
    await exits.closed
    await server.line('connection closed', ({ reason }) => reason === 'exit')
    const closes = await new SocketPeer(path).hello()
    const last = closes.call('add', { memory: 'm', items: [textItem('last words')] })
    closes.socket.end()
    expect((await last).error).toBeUndefined()
    await closes.closed
    await server.line('connection closed', ({ reason }) => reason === 'eof')
    expect((await stays.result('query', { memory: 'm' })).count).toBe(1)
  })

  it('says nothing on standard output, and nothing of content in its log', async () => {
    const path = socketPath()
    const server = await Server.start({ args: ['--listen', `unix:${path}`, '--log-level', 'trace'] })
    const peer = await new SocketPeer(path).hello()
    await peer.result('add', { memory: 'm', items: [textItem('geheimnis')] })
    await peer.result('query', { memory: 'm' })
    await peer.call('gehe\u0069mnis', { a: 'geheimnis' })
    peer.socket.end()
    await server.line('connection closed')
    expect(server.stderr).not.toMatch(/geheimnis/)
  })
})

describe('a Unix socket', () => {
  it('is private from its first moment, unless it is widened', async () => {
    const path = socketPath()
    await Server.start({ args: ['--listen', `unix:${path}`] })
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const wide = socketPath()
    await Server.start({ args: ['--listen', `unix:${wide}`, '--socket-mode', '0660'] })
    expect(statSync(wide).mode & 0o777).toBe(0o660)
  })

  it('is removed when the server ends, and replaced when it was killed (G22)', async () => {
    const store = tempDir()
    const path = socketPath()
    const args = ['--listen', `unix:${path}`]
    const killed = await Server.start({ store, args })
    killed.signal('SIGKILL')
    await killed.exit
    expect(existsSync(path)).toBe(true)
    const next = await Server.start({ store, args })
    await new SocketPeer(path).hello()
    next.signal('SIGTERM')
    expect((await next.exit).code).toBe(0)
    expect(existsSync(path)).toBe(false)
  })

  it('of a live server is refused, named, and left alone', async () => {
    const path = socketPath()
    const live = await Server.start({ args: ['--listen', `unix:${path}`] })
    const { code, stderr } = await new Server({ args: ['--listen', `unix:${path}`] }).exit
    expect(code).toBe(6)
    expect(stderr).toContain(`${path} is in use by a server that runs`)
    await new SocketPeer(path).hello()
    live.signal('SIGTERM')
    await live.exit
  })

  it.each<[string, (path: string) => void, RegExp]>([
    ['a file', (path) => writeFileSync(path, 'mine'), /is a file and no socket/],
    ['a directory', (path) => mkdirSync(path), /is a directory and no socket/],
    ['a symbolic link', (path) => symlinkSync('elsewhere', path), /is a symbolic link and no socket/],
  ])('path that is %s is refused and untouched', async (_what, make, message) => {
    const path = socketPath()
    make(path)
    const { code, stderr } = await new Server({ args: ['--listen', `unix:${path}`] }).exit
    expect(code).toBe(6)
    expect(stderr).toMatch(message)
    if (existsSync(path) && statSync(path).isFile()) expect(readFileSync(path, 'utf8')).toBe('mine')
  })

  it('of several servers that start at once exactly one wins, over a dead socket too', async () => {
    const path = socketPath()
    const args = ['--listen', `unix:${path}`]
    const dead = await Server.start({ args })
    dead.signal('SIGKILL')
    await dead.exit
    const racers = Array.from({ length: 4 }, () => new Server({ args }))
    const outcomes = await Promise.all(
      racers.map((racer) =>
        racer.line('ready').then(
          () => 'ready',
          () => 'refused',
        ),
      ),
    )
    expect(outcomes.sort()).toEqual(['ready', 'refused', 'refused', 'refused'])
    await new SocketPeer(path).hello()
  })

  it('path that is too long gets a sentence', async () => {
    const { code, stderr } = await new Server({ args: ['--listen', `unix:/tmp/${'x'.repeat(110)}`] }).exit
    expect(code).toBe(2)
    expect(stderr).toMatch(/path of 115 bytes, and a Unix socket's has at most 10[37]; choose a shorter one/)
  })

  it('in a directory that is not there gets a sentence', async () => {
    const { code, stderr } = await new Server({ args: ['--listen', 'unix:/nowhere/m.sock'] }).exit
    expect(code).toBe(6)
    expect(stderr).toMatch(/the directory \/nowhere is not there; make it first/)
  })
})

describe('a port', () => {
  it('of another process is refused with a sentence', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => other.once('listening', resolve))
    const { port } = other.address() as { port: number }
    const { code, stderr } = await new Server({ args: ['--listen', `tcp:127.0.0.1:${port}`] }).exit
    other.close()
    expect(code).toBe(6)
    expect(stderr).toMatch(/another process listens there/)
  })

  it.each([['tcp:0.0.0.0:0'], ['tcp:[::]:0'], ['tcp:somewhere.example:1'], ['tls:0.0.0.0:0']])(
    'that other machines can reach, %s, needs tokens',
    async (address) => {
      const { code, stderr } = await new Server({ args: ['--listen', address] }).exit
      expect(code).toBe(2)
      expect(stderr).toMatch(/can be reached from other machines.*--token-file/)
    },
  )

  it('with tokens is served, and warned of without TLS', async () => {
    const file = join(tempDir(), 'tokens.json')
    const token = makeToken(file, 'a', '--memory', '*', '--verb', 'read')
    const server = await Server.start({ args: ['--listen', 'tcp:0.0.0.0:0', '--token-file', file] })
    expect(server.lines.some(({ level, msg }) => level === 'warn' && /no TLS/.test(msg))).toBe(true)
    await new SocketPeer(server.port('tcp')).hello(token)
  })
})

describe('TLS', () => {
  it('serves under its certificate, and under the next one when the files change', async () => {
    const dir = tempDir()
    const old = makeCertificate(dir, 'old')
    const next = makeCertificate(dir, 'next')
    const [cert, key] = [join(dir, 'cert.pem'), join(dir, 'key.pem')]
    writeFileSync(cert, old.cert)
    writeFileSync(key, old.key)
    const args = ['--listen', 'tls:127.0.0.1:0', '--tls-cert', cert, '--tls-key', key]
    const server = await Server.start({ args })
    const tls = server.port('tls')
    const first = await new SocketPeer({ tls, ca: old.cert }).hello()
    writeFileSync(cert, next.cert)
    await server.line('could not be read again; the ones before stay in force')
    writeFileSync(key, next.key)
    await server.line('certificates read again')
    await new SocketPeer({ tls, ca: next.cert }).hello()
    expect((await first.result('ping')).ready).toBe(true)
  })

  it('asks for a client certificate where a CA is given', async () => {
    const dir = tempDir()
    const own = makeCertificate(dir, 'server')
    const ca = makeCertificate(dir, 'ca')
    const client = makeCertificate(dir, 'client', ca)
    const files = ['--tls-cert', own.certFile, '--tls-key', own.keyFile, '--tls-ca', ca.certFile]
    const server = await Server.start({ args: ['--listen', 'tls:127.0.0.1:0', ...files] })
    const tls = server.port('tls')
    await new SocketPeer({ tls, ca: own.cert, cert: client.cert, key: client.key }).hello()
    const stranger = new SocketPeer({ tls, ca: own.cert })
    await stranger.closed
    expect(stranger.inbox.answers).toEqual([])
    const signedByNobody = new SocketPeer({ tls, ca: own.cert, cert: own.cert, key: own.key })
    await signedByNobody.closed
  })

  it.each<[string, (dir: string) => string[], RegExp]>([
    ['no certificate', () => [], /needs --tls-cert and --tls-key/],
    [
      'a file that is not there',
      () => ['--tls-cert', '/no', '--tls-key', '/no'],
      /\/no can't be read \(ENOENT\)/,
    ],
    [
      'the key of another certificate',
      (dir) => {
        const [a, b] = [makeCertificate(dir, 'a'), makeCertificate(dir, 'b')]
        return ['--tls-cert', a.certFile, '--tls-key', b.keyFile]
      },
      /b\.key is not the key of the certificate in .*a\.crt/,
    ],
    [
      'a key in place of the certificate',
      (dir) => {
        const { keyFile } = makeCertificate(dir, 'a')
        return ['--tls-cert', keyFile, '--tls-key', keyFile]
      },
      /a\.key holds no certificate in PEM/,
    ],
  ])('with %s is refused before anything is opened', async (_what, args, message) => {
    const store = join(tempDir(), 'store')
    const { code, stderr } = await new Server({
      store,
      args: ['--listen', 'tls:127.0.0.1:0', ...args(tempDir())],
    }).exit
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect(existsSync(store)).toBe(false)
  })

  it('on the plain port and the reverse end the connection, and others are served', async () => {
    const { certFile, keyFile, cert } = makeCertificate(tempDir(), 'a')
    const files = ['--tls-cert', certFile, '--tls-key', keyFile]
    const server = await Server.start({ args: ['--listen', TCP, '--listen', 'tls:127.0.0.1:0', ...files] })
    const tls = server.port('tls')
    const tlsOnPlain = new SocketPeer({ tls: server.port('tcp'), ca: cert })
    await tlsOnPlain.closed
    const plainOnTls = new SocketPeer(tls, { reading: false })
    plainOnTls.write(request(1, 'ping'))
    plainOnTls.socket.resume()
    await plainOnTls.closed
    await new SocketPeer({ tls, ca: cert }).hello()
    await new SocketPeer(server.port('tcp')).hello()
  })
})
