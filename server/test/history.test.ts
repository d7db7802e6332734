import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Daemon, tempDir } from './daemon.ts'
import { textItem } from './frames.ts'
import { makeToken, Server, SocketPeer } from './serving.ts'

const memory = 'm'

describe('history over the wire', () => {
  it('compares, searches and branches', async () => {
    const path = join(tempDir(), 'm.sock')
    await Server.start({ args: ['--listen', `unix:${path}`] })
    const peer = await new SocketPeer(path).hello()
    const first = await peer.result('add', { memory, items: [textItem('a')], time: 1000 })
    const second = await peer.result('add', { memory, items: [textItem('metric')], time: 2000 })
    expect((await peer.result('branch', { memory, name: 'trial', at: first.commit })).branches).toEqual([
      { name: 'main', commit: second.commit, default: true },
      { name: 'trial', commit: first.commit, default: false },
    ])
    await peer.result('add', { memory, branch: 'trial', items: [textItem('imperial')], time: 3000 })
    const { changes } = await peer.result('diff', { memory, from: 'main', to: 'trial' })
    expect(changes).toMatchObject([
      {
        id: 'm:0000000001',
        kind: 'changed',
        old: { content: { text: 'metric' } },
        new: { content: { text: 'imperial' } },
      },
    ])
    expect((await peer.result('changed', { memory, commit: second.commit })).changes).toMatchObject([
      { id: 'm:0000000001', kind: 'added' },
    ])
    const found = await peer.result('bisect', { memory, where: { contains: 'metric' } })
    expect(found.commit).toMatchObject({ id: second.commit, time: 2000 })
    expect(await peer.result('bisect', { memory, probe: 0 })).toMatchObject({
      commit: { id: first.commit },
      count: 2,
    })
    expect((await peer.result('history', { memory, id: 'm:0000000001' })).entries).toMatchObject([
      { kind: 'added', commit: { id: second.commit }, item: { content: { text: 'metric' } } },
    ])
    expect((await peer.result('switch', { memory, branch: 'trial' })).branches[1].default).toBe(true)
    expect((await peer.result('query', { memory })).items[1].content.text).toBe('imperial')
    await peer.result('delete_branch', { memory, name: 'main' })
    expect(await peer.kind('query', { memory, branch: 'main' })).toBe('not_found')
    expect((await peer.result('branches', { memory })).branches).toHaveLength(1)
  })

  it('merges two branches, keeping what both added', async () => {
    const path = join(tempDir(), 'm.sock')
    await Server.start({ args: ['--listen', `unix:${path}`] })
    const peer = await new SocketPeer(path).hello()
    await peer.result('add', { memory, items: [textItem('a')] })
    await peer.result('branch', { memory, name: 'trial' })
    await peer.result('add', { memory, items: [textItem('ours')] })
    const theirs = await peer.result('add', { memory, branch: 'trial', items: [textItem('theirs')] })
    const merged = await peer.result('merge', { memory, from: 'trial', idempotency_key: 'k' })
    expect(merged).toMatchObject({
      status: 'merged',
      renumbered: [{ from: 'm:0000000001', to: 'm:0000000002', count: 1 }],
    })
    expect(await peer.result('merge', { memory, from: 'trial', idempotency_key: 'k' })).toEqual({
      ...merged,
      replayed: true,
    })
    const { items } = await peer.result('query', { memory })
    expect(items.map(({ content }: { content: { text: string } }) => content.text)).toEqual([
      'a',
      'ours',
      'theirs',
    ])
    expect((await peer.result('why', { memory, id: 'm:0000000002' })).commit.id).toBe(theirs.commit)
    expect((await peer.result('log', { memory })).commits).toHaveLength(4)
    expect((await peer.call('merge', { memory, from: 'trial', strategy: 'both' })).error?.data).toMatchObject(
      {
        kind: 'invalid_params',
        path: 'strategy',
      },
    )
    const resolutions = { 'm:0000000000': 'neither' }
    expect((await peer.call('merge', { memory, from: 'trial', resolutions })).error?.data.kind).toBe(
      'invalid_params',
    )
  })

  it('verifies, and repairs only for who may', async () => {
    const path = join(tempDir(), 'm.sock')
    const file = join(tempDir(), 'tokens.json')
    const verbs = (...args: string[]) => args.flatMap((verb) => ['--verb', verb])
    const reads = makeToken(file, 'r', '--memory', '*', ...verbs('read', 'write'))
    const repairs = makeToken(file, 'a', '--memory', '*', ...verbs('read', 'admin'))
    await Server.start({ args: ['--listen', `unix:${path}`, '--token-file', file] })
    const [reader, admin] = [
      await new SocketPeer(path).hello(reads),
      await new SocketPeer(path).hello(repairs),
    ]
    await reader.result('add', { memory, items: [textItem('a')] })
    expect(await reader.result('verify', { memory })).toEqual({
      ok: true,
      objects: 4,
      problems: [],
      redacted: [],
      purged: [],
    })
    expect(await reader.kind('verify', { memory, repair: true })).toBe('unauthorized')
    expect(await admin.result('verify', { memory, repair: true })).toMatchObject({ ok: true })
  })

  it('purges for who may, by the author that the token says, and names no memory that it may not see', async () => {
    const path = join(tempDir(), 'm.sock')
    const file = join(tempDir(), 'tokens.json')
    const all = ['--verb', 'read', '--verb', 'write', '--verb', 'admin']
    const everything = makeToken(file, 'all', '--memory', '*', ...all)
    const pinned = makeToken(file, 'one', '--memory', memory, ...all, '--author', 'ann')
    const writes = makeToken(file, 'w', '--memory', memory, '--verb', 'read', '--verb', 'write')
    await Server.start({ args: ['--listen', `unix:${path}`, '--token-file', file] })
    const connect = (token: string) => new SocketPeer(path).hello(token)
    const [root, ann, writer] = [await connect(everything), await connect(pinned), await connect(writes)]
    const { ids } = await ann.result('add', {
      memory,
      items: [textItem('a'), textItem('hunter2'), textItem('b')],
    })
    const { text } = await root.result('export', { memory })
    await root.result('import', { memory: 'copy', part: 0, text })
    const held = await ann.result('query', { memory })
    const purge = { memory, ids: [ids[1]], reason: 'a password', author: 'somebody' }
    expect(await writer.kind('purge', purge)).toBe('unauthorized')
    expect(await ann.result('purge', purge)).toEqual({ purged: [ids[1]], epoch: 1, elsewhere: [] })
    expect((await root.result('purge', purge)).elsewhere).toEqual(['copy'])
    expect((await writer.result('verify', { memory })).purged).toMatchObject([
      { id: ids[1], author: 'ann', reason: 'a password' },
    ])
    const have = { commit: held.commit, count: held.count, epoch: held.epoch }
    const now = await writer.result('query', { memory, have })
    expect([now.mode, now.count, now.items.map(({ id }: { id: string }) => id)]).toEqual([
      'full',
      2,
      [ids[0], ids[2]],
    ])
    expect((await writer.result('show', { memory })).items[1]).toEqual({ id: ids[1], redacted: true })
    expect((await root.call('import', { memory: 'back', part: 0, text })).error?.data).toMatchObject({
      kind: 'conflict',
      reason: 'purged',
    })
    expect(await root.result('import', { memory: 'back', part: 0, text, force: true })).toMatchObject({
      commits: 1,
    })
  })

  it('moves a memory out and in, in parts, and leaves nothing of an import that was given up', async () => {
    const path = join(tempDir(), 'm.sock')
    await Server.start({ args: ['--listen', `unix:${path}`] })
    const peer = await new SocketPeer(path).hello()
    for (let i = 0; i < 12; i++)
      await peer.result('add', { memory, items: [textItem(`${i} ${'x'.repeat(1_000_000)}`)] })
    const parts: string[] = []
    for (let after: string | undefined; ; ) {
      const part = await peer.result('export', { memory, ...(after === undefined ? {} : { after }) })
      parts.push(part.text)
      if (part.next === undefined) break
      after = part.next
    }
    expect(parts.length).toBeGreaterThan(2)
    const last = parts.length - 1
    for (const [part, text] of parts.entries()) {
      const answer = await peer.result('import', {
        memory: 'copy',
        part,
        text,
        ...(part < last ? { more: true } : {}),
      })
      if (part === last) expect(answer).toMatchObject({ part, commits: 12 })
    }
    expect((await peer.result('stats', { memory: 'copy' })).items).toBe(12)
    const { commits } = await peer.result('stats')
    const other = await new SocketPeer(path).hello()
    await other.result('import', { memory: 'half', part: 0, text: parts[0], more: true })
    expect(await other.kind('import', { memory: 'half', part: 2, text: 'x' })).toBe('conflict')
    other.socket.end()
    await other.closed
    expect((await peer.result('stats')).commits).toBe(commits)
    expect(await peer.kind('delete_memory', { memory: 'copy', confirm: 'cop' })).toBe('invalid_params')
    expect(await peer.result('delete_memory', { memory: 'copy', confirm: 'copy' })).toBeNull()
    expect((await peer.result('memories')).memories).toHaveLength(1)
  })

  it('backs the store up below the directory that the server has for it, and nowhere else', async () => {
    const path = join(tempDir(), 'm.sock')
    const dir = tempDir()
    await Server.start({ args: ['--listen', `unix:${path}`, '--backup-dir', dir] })
    const peer = await new SocketPeer(path).hello()
    await peer.result('add', { memory, items: [textItem('a')] })
    expect(await peer.result('backup', { to: 'monday/1' })).toMatchObject({ to: join(dir, 'monday/1') })
    expect(await peer.kind('backup', { to: 'monday/1' })).toBe('conflict')
    for (const to of ['/tmp/x', '../x', 'a/../../x', '.', '..', 'a\0b', 'a/..'])
      expect(await peer.kind('backup', { to })).toBe('invalid_params')
    const daemon = await new Daemon({ store: join(dir, 'monday/1') }).hello()
    expect((await daemon.result('query', { memory })).count).toBe(1)
    expect((await daemon.call('backup', { to: 'relative' })).error?.data.kind).toBe('invalid_params')
    expect(await daemon.result('backup', { to: join(dir, 'tuesday') })).toMatchObject({
      to: join(dir, 'tuesday'),
    })
    await daemon.end()
    const none = join(tempDir(), 'm.sock')
    await Server.start({ args: ['--listen', `unix:${none}`] })
    expect(await (await new SocketPeer(none).hello()).kind('backup', { to: 'x' })).toBe('unauthorized')
  })

  it('is for tokens that may read, its branches for those that may write', async () => {
    const path = join(tempDir(), 'm.sock')
    const file = join(tempDir(), 'tokens.json')
    const reads = makeToken(file, 'r', '--memory', 'm', '--verb', 'read')
    const writes = makeToken(file, 'w', '--memory', 'm', '--verb', 'write')
    await Server.start({ args: ['--listen', `unix:${path}`, '--token-file', file] })
    const [reader, writer] = [
      await new SocketPeer(path).hello(reads),
      await new SocketPeer(path).hello(writes),
    ]
    const { commit, ids } = await writer.result('add', { memory, items: [textItem('a')] })
    const asks: Array<[string, object]> = [
      ['diff', { from: commit, to: commit }],
      ['changed', { commit }],
      ['history', { id: ids[0] }],
      ['bisect', { probe: 0 }],
      ['branches', {}],
    ]
    for (const [method, params] of asks) {
      expect(await reader.kind(method, { memory, ...params })).toBeUndefined()
      expect(await writer.kind(method, { memory, ...params })).toBe('unauthorized')
      expect(await reader.kind(method, { memory: 'other', ...params })).toBe('unauthorized')
    }
    const changes: Array<[string, object]> = [
      ['branch', { name: 'x' }],
      ['switch', { branch: 'x' }],
      ['delete_branch', { name: 'main' }],
    ]
    for (const [method, params] of changes) {
      expect(await reader.kind(method, { memory, ...params })).toBe('unauthorized')
      expect(await writer.kind(method, { memory, ...params })).toBeUndefined()
    }
  })
})
