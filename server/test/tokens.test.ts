import { spawn } from 'node:child_process'
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hashToken, newToken, Tokens } from '../src/access/tokens.ts'
import { ENTRY, tempDir } from './daemon.ts'
import { textItem } from './frames.ts'
import { makeToken, run, Server, SocketPeer } from './serving.ts'

const ADD = { items: [textItem('x')] }

function tokenFile(): string {
  return join(tempDir(), 'tokens.json')
}

async function serving(file: string): Promise<{ server: Server; path: string }> {
  const path = join(tempDir(), 'm.sock')
  return {
    server: await Server.start({ args: ['--listen', `unix:${path}`, '--token-file', file] }),
    path,
  }
}

describe('token new', () => {
  it('prints the token alone on its last line, and only its hash is on disk', () => {
    const file = tokenFile()
    const token = makeToken(file, 'agent', '--memory', 'prefs', '--verb', 'read')
    expect(token).toMatch(/^mnem_[\w-]{43}$/)
    const text = readFileSync(file, 'utf8')
    expect(text).not.toContain(token.slice(5))
    expect(JSON.parse(text).tokens).toMatchObject([
      { name: 'agent', sha256: hashToken(token).toString('hex'), memories: ['prefs'], verbs: ['read'] },
    ])
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('keeps the others and their file’s mode, also when several are made at once', async () => {
    const file = tokenFile()
    makeToken(file, 'first')
    chmodSync(file, 0o640)
    const makers = Array.from({ length: 4 }, (_, i) => {
      const args = [ENTRY, 'token', 'new', '--file', file, '--name', `t${i}`]
      return new Promise((resolve) => spawn(process.execPath, args, { stdio: 'ignore' }).on('close', resolve))
    })
    expect(await Promise.all(makers)).toEqual([0, 0, 0, 0])
    expect(run('token', 'list', '--file', file).stdout.split('\n').sort()).toEqual(
      ['', 'first\tping only', 't0\tping only', 't1\tping only', 't2\tping only', 't3\tping only'].sort(),
    )
    expect(statSync(file).mode & 0o777).toBe(0o640)
  })

  it.each<[string, string[], RegExp]>([
    ['no file', ['new', '--name', 'a'], /--file FILE/],
    ['no name', ['new', '--file', 'F'], /--name NAME/],
    [
      'another verb',
      ['new', '--file', 'F', '--name', 'a', '--memory', 'm', '--verb', 'all'],
      /read, write, admin/,
    ],
    [
      'a memory without a verb',
      ['new', '--file', 'F', '--name', 'a', '--memory', 'm'],
      /both --memory and --verb/,
    ],
    [
      'a verb without a memory',
      ['new', '--file', 'F', '--name', 'a', '--verb', 'read'],
      /both --memory and --verb/,
    ],
    [
      'no memory’s name',
      ['new', '--file', 'F', '--name', 'a', '--memory', 'a\nb', '--verb', 'read'],
      /no memory's name/,
    ],
    ['no action', [], /new, list, revoke/],
    ['another action', ['make', '--file', 'F'], /new, list, revoke/],
    ['a token that is not there', ['revoke', '--file', 'F', '--name', 'nobody'], /has no token "nobody"/],
    ['a file that is not there', ['list', '--file', 'F'], /can't be read \(ENOENT\)/],
  ])('with %s says what to do and writes nothing', (_what, args, message) => {
    const file = tokenFile()
    const { status, stderr, stdout } = run('token', ...args.map((arg) => (arg === 'F' ? file : arg)))
    expect(status).toBe(2)
    expect(stderr).toMatch(message)
    expect(stdout).toBe('')
  })

  it('refuses a name that is taken, and a file that is none', () => {
    const file = tokenFile()
    makeToken(file, 'a')
    const before = readFileSync(file, 'utf8')
    expect(run('token', 'new', '--file', file, '--name', 'a').stderr).toMatch(/has a token "a" already/)
    expect(readFileSync(file, 'utf8')).toBe(before)
    writeFileSync(file, 'secret words')
    const { status, stderr } = run('token', 'new', '--file', file, '--name', 'b')
    expect(status).toBe(2)
    expect(stderr).toMatch(/is no JSON/)
    expect(stderr).not.toMatch(/secret words/)
    expect(readFileSync(file, 'utf8')).toBe('secret words')
  })
})

describe('a token', () => {
  it('is needed, must be known, and a wrong one ends the connection', async () => {
    const file = tokenFile()
    const token = makeToken(file, 'a', '--memory', '*', '--verb', 'read')
    const { server, path } = await serving(file)
    for (const wrong of [undefined, '', 'x', newToken(), `${token}x`, token.slice(0, -1)]) {
      const peer = new SocketPeer(path)
      expect((await peer.initialize(wrong)).error?.data.kind).toBe('unauthorized')
      await peer.closed
    }
    await new SocketPeer(path).hello(token)
    expect(server.stderr).not.toContain(token)
  })

  it('lets its verbs through and no other, none standing for another', async () => {
    const file = tokenFile()
    const tokens = {
      read: makeToken(file, 'r', '--memory', '*', '--verb', 'read'),
      write: makeToken(file, 'w', '--memory', '*', '--verb', 'write'),
      admin: makeToken(file, 'a', '--memory', '*', '--verb', 'admin'),
    }
    const { path } = await serving(file)
    const reader = await new SocketPeer(path).hello(tokens.read)
    const writer = await new SocketPeer(path).hello(tokens.write)
    const admin = await new SocketPeer(path).hello(tokens.admin)
    const { ids } = await writer.result('add', { memory: 'm', ...ADD })
    const reads: Array<[string, object]> = [
      ['query', {}],
      ['update_context', {}],
      ['show', {}],
      ['log', {}],
      ['why', { id: ids[0] }],
      ['stats', {}],
    ]
    const writes: Array<[string, object]> = [
      ['add', ADD],
      ['forget', { ids: [ids[0]] }],
      ['clear', {}],
    ]
    for (const [method, params] of reads) {
      expect(await reader.kind(method, { memory: 'm', ...params })).toBeUndefined()
      expect(await writer.kind(method, { memory: 'm', ...params })).toBe('unauthorized')
      expect(await admin.kind(method, { memory: 'm', ...params })).toBe('unauthorized')
    }
    for (const [method, params] of writes) {
      expect(await reader.kind(method, { memory: 'm', ...params })).toBe('unauthorized')
      expect(await admin.kind(method, { memory: 'm', ...params })).toBe('unauthorized')
      expect(await writer.kind(method, { memory: 'm', ...params })).toBeUndefined()
    }
    expect(await writer.kind('memories')).toBe('unauthorized')
    expect(await writer.kind('stats')).toBe('unauthorized')
    expect(await reader.kind('memories')).toBeUndefined()
    for (const peer of [reader, writer, admin]) expect(await peer.kind('ping')).toBeUndefined()
  })

  it('is for its memories only, and what is forbidden can’t be told from what is not there', async () => {
    const file = tokenFile()
    const all = makeToken(file, 'all', '--memory', '*', '--verb', 'read', '--verb', 'write')
    const some = makeToken(
      file,
      'some',
      '--memory',
      'prefs',
      '--memory',
      'team/*',
      '--verb',
      'read',
      '--verb',
      'write',
    )
    const { path } = await serving(file)
    const owner = await new SocketPeer(path).hello(all)
    for (const memory of ['prefs', 'prefs2', 'team/a', 'secret'])
      await owner.result('add', { memory, ...ADD })
    const peer = await new SocketPeer(path).hello(some)
    expect((await peer.result('query', { memory: 'prefs' })).count).toBe(1)
    expect((await peer.result('query', { memory: 'team/a' })).count).toBe(1)
    await peer.result('add', { memory: 'team/new', ...ADD })
    const calls: Array<[string, object]> = [
      ['query', {}],
      ['add', ADD],
      ['log', {}],
      ['log', { after: 'f'.repeat(64) }],
      ['show', { at: 'abcd' }],
      ['why', { id: 'secret:0000000000' }],
      ['stats', {}],
      ['forget', { ids: ['secret:0000000000'] }],
      ['query', { branch: 'nothing' }],
    ]
    for (const [method, params] of calls) {
      const [there, nowhere] = await Promise.all(
        ['secret', 'nowhere'].map((memory) => peer.call(method, { memory, ...params })),
      )
      expect(there?.error?.data.kind).toBe('unauthorized')
      expect(there?.error).toEqual(nowhere?.error)
    }
    for (const memory of ['prefs2', 'pref', 'team', 'Team/a', 'xteam/a'])
      expect(await peer.kind('query', { memory })).toBe('unauthorized')
    expect(await peer.kind('stats')).toBe('unauthorized')
  })

  it('lists the memories that it covers, a page at a time, in the store’s order', async () => {
    const file = tokenFile()
    const all = makeToken(file, 'all', '--memory', '*', '--verb', 'read', '--verb', 'write')
    const some = makeToken(
      file,
      'some',
      '--memory',
      'b/*',
      '--memory',
      'b/1*',
      '--memory',
      'é',
      '--memory',
      'a',
      '--memory',
      'nowhere',
      '--verb',
      'read',
    )
    const { path } = await serving(file)
    const owner = await new SocketPeer(path).hello(all)
    const names = ['a', 'aa', 'b', ...Array.from({ length: 25 }, (_, i) => `b/${i}`), 'c', 'é', '漢']
    await Promise.all(names.map((memory) => owner.result('add', { memory, ...ADD })))
    const peer = await new SocketPeer(path).hello(some)
    const expected = ['a', ...names.filter((name) => name.startsWith('b/')).sort(), 'é']
    expect(await pages(peer, {})).toEqual(expected)
    for (const limit of [1, 2, 7, 26, 27, 28]) expect(await pages(peer, { limit })).toEqual(expected)
    expect(await pages(peer, { prefix: 'b/1', limit: 3 })).toEqual(
      expected.filter((name) => name.startsWith('b/1')),
    )
    expect(await pages(peer, { prefix: 'é' })).toEqual(['é'])
    expect(await pages(peer, { prefix: 'c' })).toEqual([])
    expect(await pages(owner, { limit: 4 })).toHaveLength(names.length)
  })

  it('may pin the author, whatever the client says, so that why can be trusted', async () => {
    const file = tokenFile()
    const token = makeToken(
      file,
      'a',
      '--memory',
      '*',
      '--verb',
      'read',
      '--verb',
      'write',
      '--author',
      'agent-7',
    )
    const { path } = await serving(file)
    const peer = await new SocketPeer(path).hello(token)
    const { ids } = await peer.result('add', { memory: 'm', author: 'somebody else', ...ADD })
    await peer.result('add', { memory: 'm', ...ADD })
    await peer.result('forget', { memory: 'm', author: 'x', ids: [ids[0]] })
    await peer.result('clear', { memory: 'm', author: 'x' })
    const { commits } = await peer.result('log', { memory: 'm' })
    expect(commits.map(({ author }: { author: string }) => author)).toEqual(Array(4).fill('agent-7'))
  })

  it('that is withdrawn ends its connections, answers what was taken, and leaves the others alone', async () => {
    const file = tokenFile()
    const goes = makeToken(file, 'goes', '--memory', '*', '--verb', 'write')
    const stays = makeToken(file, 'stays', '--memory', '*', '--verb', 'read')
    const { server, path } = await serving(file)
    const leaving = await new SocketPeer(path).hello(goes)
    const staying = await new SocketPeer(path).hello(stays)
    run('token', 'revoke', '--file', file, '--name', 'goes')
    await leaving.closed
    await server.line('connection closed', ({ reason }) => reason === 'token_withdrawn')
    expect((await new SocketPeer(path).initialize(goes)).error?.data.kind).toBe('unauthorized')
    await staying.result('query', { memory: 'm' })
  })

  it('whose rules change goes on under the new ones', async () => {
    const file = tokenFile()
    const token = makeToken(file, 'a', '--memory', 'm', '--verb', 'read')
    const { server, path } = await serving(file)
    const peer = await new SocketPeer(path).hello(token)
    expect(await peer.kind('add', { memory: 'm', ...ADD })).toBe('unauthorized')
    writeFileSync(file, readFileSync(file, 'utf8').replace('"read"', '"write"'))
    server.signal('SIGHUP')
    await server.line('tokens read again')
    expect(await peer.kind('add', { memory: 'm', ...ADD })).toBeUndefined()
    expect(await peer.kind('query', { memory: 'm' })).toBe('unauthorized')
  })
})

describe('a token file', () => {
  it('that becomes unreadable or wrong changes nothing, and is told', async () => {
    const file = tokenFile()
    const token = makeToken(file, 'a', '--memory', '*', '--verb', 'read')
    const { server, path } = await serving(file)
    writeFileSync(file, '{"tokens": [{"name": "a", "sha256": "short"}]}')
    const line = await server.line('could not be read again; the ones before stay in force')
    expect(line.why).toMatch(/tokens\[0\]\.sha256 must be 64 hex digits/)
    await new SocketPeer(path).hello(token)
  })

  it.each<[string, string, RegExp]>([
    ['no JSON', 'tokens', /is no JSON/],
    ['no list', '{}', /list "tokens"/],
    ['a member that is not known', '{"tokens": [{"name": "a", "token": "t"}]}', /member that is not known/],
    [
      'a name twice',
      JSON.stringify({
        tokens: ['a', 'a'].map((name) => ({ name, sha256: '0'.repeat(64), memories: [], verbs: [] })),
      }),
      /tokens\[1\] has the name of another token/,
    ],
    [
      'another verb',
      JSON.stringify({ tokens: [{ name: 'a', sha256: '0'.repeat(64), memories: ['m'], verbs: ['own'] }] }),
      /verbs must be a list of read, write, admin/,
    ],
    [
      'no memory’s name',
      JSON.stringify({ tokens: [{ name: 'a', sha256: '0'.repeat(64), memories: [''], verbs: ['read'] }] }),
      /no memory's name/,
    ],
  ])('with %s is refused at the start', async (_what, text, message) => {
    const file = tokenFile()
    writeFileSync(file, text)
    const args = ['--listen', 'tcp:127.0.0.1:0', '--token-file', file]
    const { code, stderr } = await new Server({ args }).exit
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
  })
})

it('tokens are found by their hash alone', () => {
  const token = newToken()
  const entry = { name: 'a', sha256: hashToken(token).toString('hex'), memories: ['m'], verbs: [] }
  const tokens = new Tokens([entry, { ...entry, name: 'b', sha256: '0'.repeat(64) }])
  expect(tokens.find(hashToken(token))?.token).toBe('a')
  expect(tokens.find(hashToken(newToken()))).toBeUndefined()
})

/** All names, gathered over all pages. */
async function pages(peer: SocketPeer, params: object): Promise<string[]> {
  const names: string[] = []
  for (let after: string | undefined; ; ) {
    const page = await peer.result('memories', { ...params, ...(after === undefined ? {} : { after }) })
    names.push(...page.memories.map(({ name }: { name: string }) => name))
    if (page.next === undefined) return names
    after = page.next
  }
}
