import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Daemon, tempDir } from './daemon.ts'
import { request, textItem } from './frames.ts'
import { makeCertificate, makeToken, run, Server, SocketPeer } from './serving.ts'

const TCP = 'tcp:127.0.0.1:0'

function socketPath(): string {
  return join(tempDir(), 'm.sock')
}

describe('the end', () => {
  it('on SIGTERM answers what was taken, loses nothing, and is reached within the drain', async () => {
    const store = tempDir()
    const path = socketPath()
    const args = ['--listen', `unix:${path}`, '--drain', '5s']
    const server = await Server.start({ store, args })
    const peers = await Promise.all(Array.from({ length: 8 }, () => new SocketPeer(path).hello()))
    const acknowledged: string[] = []
    const running = peers.map(async (peer, number) => {
      for (let i = 0; ; i++) {
        const text = `${number} ${i}`
        const answer = await peer.call('add', { memory: 'm', items: [textItem(text)] }).catch(() => undefined)
        if (answer?.result === undefined) return
        acknowledged.push(text)
        if (acknowledged.length === 200) server.signal('SIGTERM')
      }
    })
    await Promise.all(running)
    expect((await server.exit).code).toBe(0)
    await Server.start({ store, args })
    const peer = await new SocketPeer(path).hello()
    const { items } = await peer.result('query', { memory: 'm' })
    const kept = items.map((item: { content: { text: string } }) => item.content.text)
    expect(new Set(kept).size).toBe(kept.length)
    for (const text of acknowledged) expect(kept).toContain(text)
  })

  it('is reached although a client takes no answers', async () => {
    const path = socketPath()
    const server = await Server.start({ args: ['--listen', `unix:${path}`, '--drain', '2s'] })
    const writer = await new SocketPeer(path).hello()
    await writer.result('add', { memory: 'm', items: [textItem('x'.repeat(4_000_000))] })
    const silent = await new SocketPeer(path).hello()
    silent.socket.pause()
    for (let id = 0; id < 8; id++) silent.write(request(id, 'query', { memory: 'm' }))
    await writer.result('ping')
    server.signal('SIGTERM')
    expect((await server.exit).code).toBe(0)
  })

  it('a second SIGTERM ends at once, and the store is whole', async () => {
    const store = tempDir()
    const path = socketPath()
    const server = await Server.start({ store, args: ['--listen', `unix:${path}`, '--drain', '1h'] })
    const writer = await new SocketPeer(path).hello()
    await writer.result('add', { memory: 'm', items: [textItem('x'.repeat(4_000_000))] })
    const silent = await new SocketPeer(path).hello()
    silent.socket.pause()
    for (let id = 0; id < 8; id++) silent.write(request(id, 'query', { memory: 'm' }))
    await writer.result('ping')
    server.signal('SIGTERM')
    await writer.closed
    server.signal('SIGTERM')
    expect((await server.exit).code).toBe(1)
    const daemon = await new Daemon({ store }).hello()
    expect((await daemon.result('stats', { memory: 'm' })).items).toBe(1)
    await daemon.end()
  })
})

describe('a store that can’t be used', () => {
  it.skipIf(process.getuid?.() !== 0)('is named with its owner, our user and the fix (G23)', async () => {
    const dir = tempDir()
    const store = join(dir, 'data')
    await (await new Daemon({ store }).hello()).end()
    chmodSync(dir, 0o755)
    chmodSync(store, 0o755)
    const args = ['--listen', `unix:${socketPath()}`]
    const nobody = 'process.setgid(65534), process.setuid(65534)'
    const preload = `data:text/javascript,${encodeURIComponent(nobody)}`
    const { code, stderr } = await new Server({ store, args, nodeArgs: ['--import', preload] }).exit
    expect(code).toBe(3)
    expect(stderr).toMatch(
      /data belongs to user 0:0 \(mode 0755\), and this process runs as 65534:65534 .*chown -R 65534:65534/,
    )
  })

  it('is refused before anything listens', async () => {
    const store = join(tempDir(), 'file')
    writeFileSync(store, '')
    const path = socketPath()
    const { code } = await new Server({ store, args: ['--listen', `unix:${path}`] }).exit
    expect(code).toBe(3)
    expect(existsSync(path)).toBe(false)
  })
})

describe('health', () => {
  it('is 0 over each transport, with a token where one is needed, and makes nothing', async () => {
    const dir = tempDir()
    const path = socketPath()
    const tokens = join(dir, 'tokens.json')
    const token = makeToken(tokens, 'probe')
    const { certFile, keyFile } = makeCertificate(dir, 'a')
    const listen = ['--listen', `unix:${path}`, '--listen', TCP, '--listen', 'tls:127.0.0.1:0']
    const files = ['--tls-cert', certFile, '--tls-key', keyFile, '--token-file', tokens]
    const server = await Server.start({ args: [...listen, ...files, '--http', '127.0.0.1:0'] })
    const ask = (endpoint: string, env: Record<string, string> = {}) =>
      health(['--endpoint', endpoint], { MNEM_TOKEN: token, ...env })
    expect(ask(`unix:${path}`)).toMatchObject({ status: 0, stdout: 'healthy\n' })
    expect(ask(`unix://${path}`).status).toBe(0)
    expect(ask(`tcp://127.0.0.1:${server.port('tcp')}`).status).toBe(0)
    expect(ask(`tls:127.0.0.1:${server.port('tls')}`, { MNEM_TLS_CA: certFile }).status).toBe(0)
    expect(ask(`http://127.0.0.1:${server.httpPort}`).status).toBe(0)
    expect(health([], { MNEM_SERVER_LISTEN: `unix:${path}`, MNEM_TOKEN: token }).status).toBe(0)
    const file = join(dir, 'token')
    writeFileSync(file, `${token}\n`)
    expect(health([], { MNEM_ENDPOINT: `unix:${path}`, MNEM_TOKEN_FILE: file }).status).toBe(0)
    expect(await server.metric('mnem_open_memories')).toBe(0)
    expect(await server.metric('mnem_commit_seconds_count')).toBe(0)
  })

  it('is 1 with a reason when nobody listens, the token is wrong, or the answer is late', async () => {
    const path = socketPath()
    expect(health(['--endpoint', `unix:${path}`], {})).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/unhealthy: nobody listens there \(ENOENT\)/),
    })
    const tokens = join(tempDir(), 'tokens.json')
    makeToken(tokens, 'probe')
    await Server.start({ args: ['--listen', `unix:${path}`, '--token-file', tokens] })
    expect(health(['--endpoint', `unix:${path}`], {})).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/asks for a token/),
    })
    const silent = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => silent.once('listening', resolve))
    const { port } = silent.address() as { port: number }
    const late = health(['--endpoint', `tcp:127.0.0.1:${port}`, '--timeout', '200ms'], {})
    silent.close()
    expect(late).toMatchObject({ status: 1, stderr: expect.stringMatching(/did not answer within 200 ms/) })
  })

  it('says what to do where nothing is said or it can’t be read', () => {
    expect(health([], {})).toMatchObject({ status: 2, stderr: expect.stringMatching(/--endpoint unix:PATH/) })
    expect(health(['--endpoint', 'ftp://x'], {})).toMatchObject({ status: 2 })
    expect(health(['--endpoint', 'unix:x', '--timeout', 'soon'], {})).toMatchObject({ status: 2 })
  })
})

function health(args: string[], env: Record<string, string>) {
  const before = { ...process.env }
  const own = ['MNEM_TOKEN', 'MNEM_TOKEN_FILE', 'MNEM_ENDPOINT', 'MNEM_SERVER_LISTEN', 'MNEM_TLS_CA']
  for (const name of own) delete process.env[name]
  Object.assign(process.env, env)
  try {
    return run('health', ...args)
  } finally {
    for (const name of own) delete process.env[name]
    Object.assign(process.env, before)
  }
}

describe('over HTTP', () => {
  it('tells its health, its readiness and its metrics, and nothing else', async () => {
    const path = socketPath()
    const server = await Server.start({ args: ['--listen', `unix:${path}`, '--http', '127.0.0.1:0'] })
    const peer = await new SocketPeer(path).hello()
    await peer.result('add', { memory: 'a name nobody must see', items: [textItem('x')] })
    await peer.call('no/such/method', {})
    await peer.call('add', { memory: 'm', items: [] })
    expect(await server.get('/healthz')).toEqual({ status: 200, body: 'ok\n' })
    expect(await server.get('/readyz')).toEqual({ status: 200, body: 'ready\n' })
    expect((await server.get('/')).status).toBe(404)
    const { body } = await server.get('/metrics')
    expect(body).toContain('mnem_requests_total{method="add",outcome="ok"} 1')
    expect(body).toContain('mnem_requests_total{method="add",outcome="invalid_params"} 1')
    expect(body).toContain('mnem_requests_total{method="unknown",outcome="method_not_found"} 1')
    expect(body).toContain('mnem_request_seconds_count{method="add"} 2')
    expect(body).toContain('mnem_commit_seconds_count 1')
    expect(body).toContain('mnem_group_writes_sum 1')
    expect(body).toContain('mnem_open_memories 1')
    expect(body).toContain('mnem_connections{transport="unix"} 1')
    expect(body).toMatch(/mnem_store_bytes [1-9]/)
    expect(body).toContain('process_resident_memory_bytes')
    expect(body).not.toMatch(/nobody must see|no\/such/)
  })

  it.skipIf(process.getuid?.() === 0)('is not ready when the store can’t be written to', async () => {
    const store = tempDir()
    const server = await Server.start({ store, args: ['--listen', TCP, '--http', '127.0.0.1:0'] })
    chmodSync(store, 0o500)
    await expect.poll(async () => (await server.get('/readyz')).status).toBe(503)
    chmodSync(store, 0o700)
    await expect.poll(async () => (await server.get('/readyz')).status).toBe(200)
  })
})

describe('a slow request', () => {
  it('gets a line with what it was and how long it took, and no more', async () => {
    const path = socketPath()
    const server = await Server.start({ args: ['--listen', `unix:${path}`, '--slow-request', '0s'] })
    const peer = await new SocketPeer(path).hello()
    await peer.result('query', { memory: 'a name' })
    const line = await server.line('slow request', ({ method }) => method === 'query')
    expect(line).toMatchObject({ level: 'warn', connection: 1, request: 2, outcome: 'ok' })
    expect(Object.keys(line).sort()).toEqual(
      ['connection', 'level', 'method', 'ms', 'msg', 'outcome', 'pid', 'request', 'time', 'transport'].sort(),
    )
  })
})

it('connections are cut off no neighbour when a client is killed in the middle', async () => {
  const path = socketPath()
  await Server.start({ args: ['--listen', `unix:${path}`] })
  const peer = await new SocketPeer(path).hello()
  for (let i = 0; i < 20; i++) {
    const other = connect(path)
    other.on('error', () => {})
    await new Promise((resolve) => other.once('connect', resolve))
    other.write(request(1, 'initialize', { protocol: 1, client: { name: 'x', version: '1' } }))
    other.write(request(2, 'add', { memory: 'm', items: [textItem('x')] }).subarray(0, 60 + i))
    other.destroy()
    expect((await peer.result('ping')).ready).toBe(true)
  }
})

describe('a service manager', () => {
  it('is told when the server is ready and when it stops, where it asks', async () => {
    const dir = tempDir()
    const told = join(dir, 'told')
    const program = join(dir, 'systemd-notify')
    writeFileSync(program, `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> ${told}\n`, { mode: 0o755 })
    const env = { NOTIFY_SOCKET: '@manager', PATH: `${dir}:${process.env.PATH}` }
    const server = await Server.start({ args: ['--listen', `unix:${socketPath()}`], env })
    await expect.poll(() => existsSync(told) && readFileSync(told, 'utf8')).toBe('@manager --ready\n')
    server.signal('SIGTERM')
    expect((await server.exit).code).toBe(0)
    await expect.poll(() => readFileSync(told, 'utf8')).toBe('@manager --ready\n@manager --stopping\n')
  })

  it('that can’t be told is a warning, and the server serves', async () => {
    const path = socketPath()
    const env = { NOTIFY_SOCKET: '@nobody', PATH: tempDir() }
    const server = await Server.start({ args: ['--listen', `unix:${path}`], env })
    await server.line('the service manager could not be told', ({ why }) => why === 'ENOENT')
    await new SocketPeer(path).hello()
  })
})

it('a server that can listen at one address and not at another leaves nothing behind', async () => {
  const path = socketPath()
  const args = ['--listen', `unix:${path}`, '--listen', 'unix:/nowhere/m.sock']
  expect((await new Server({ args }).exit).code).toBe(6)
  expect(existsSync(path)).toBe(false)
})
