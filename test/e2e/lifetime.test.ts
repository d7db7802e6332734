import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Daemon, ENTRY, tempDir } from '../../server/test/daemon.ts'
import { HELLO, request, textItem } from '../../server/test/frames.ts'

/** Ids of the items that a store holds, read by another daemon. */
async function storedIds(store: string): Promise<string[]> {
  const daemon = await new Daemon({ store }).hello()
  const { items } = await daemon.result('query', { memory: 'm' })
  await daemon.end()
  return items.map(({ id }: { id: string }) => id)
}

/** Send adds without waiting for any of them. */
function sendAdds(daemon: Daemon, count: number): void {
  for (let i = 0; i < count; i++)
    daemon.write(request(i, 'add', { memory: 'm', items: [textItem(`item ${i}`)] }))
}

/** Ids that the daemon said it stored. */
function acknowledged(daemon: Daemon): string[] {
  return daemon.inbox.answers.flatMap(({ result }) => result?.ids ?? [])
}

describe('every end in order answers what was taken', () => {
  test.each<[string, (daemon: Daemon) => void, boolean]>([
    ['end of input', (daemon) => daemon.child.stdin.end(), true],
    ['exit', (daemon) => daemon.notify('exit'), true],
    ['SIGTERM', (daemon) => daemon.child.kill('SIGTERM'), false],
    ['SIGINT', (daemon) => daemon.child.kill('SIGINT'), false],
  ])('%s', async (_how, end, all) => {
    const store = tempDir()
    const daemon = await new Daemon({ store }).hello()
    sendAdds(daemon, 50)
    end(daemon)
    const { code, stderr } = await daemon.exit
    expect(code).toBe(0)
    expect(stderr).toContain('"drained":true')
    expect(daemon.inbox.isBetweenFrames).toBe(true)
    if (all) expect(acknowledged(daemon)).toHaveLength(50)
    expect(await storedIds(store)).toEqual(acknowledged(daemon).sort())
  })

  test('shutdown answers once all before it is stored, then exit ends', async () => {
    const daemon = await new Daemon().hello()
    sendAdds(daemon, 20)
    expect(await daemon.result('shutdown')).toBeNull()
    expect(acknowledged(daemon)).toHaveLength(20)
    daemon.notify('exit')
    expect((await daemon.exit).code).toBe(0)
  })
})

test('every acknowledged add is there after kill -9, twenty times', async () => {
  const store = tempDir()
  const told: string[] = []
  for (let round = 0; round < 20; round++) {
    const daemon = await new Daemon({ store }).hello()
    sendAdds(daemon, 10)
    await daemon.inbox.count(2 + (round % 9))
    daemon.child.kill('SIGKILL')
    await daemon.exit
    told.push(...acknowledged(daemon))
  }
  const stored = await storedIds(store)
  expect(told.filter((id) => !stored.includes(id))).toEqual([])
  expect(new Set(stored).size).toBe(stored.length)
  expect(stored.length).toBeLessThanOrEqual(200)
})

/** A program that starts a daemon with pipes, says its pid, and waits; with `forks` a child of it holds the pipes too. */
const PARENT = `
const { spawn } = require('node:child_process')
const [entry, store, forks] = process.argv.slice(1)
const daemon = spawn(process.execPath, [entry, 'stdio', '--store', store], { stdio: ['pipe', 'pipe', 'ignore'] })
daemon.stdin.write(Buffer.from(process.env.HELLO, 'base64'))
daemon.stdout.once('data', () => {
  let worker
  if (forks) worker = spawn('sleep', ['60'], { stdio: ['ignore', daemon.stdin._handle, 'ignore'] })
  process.stdout.write(JSON.stringify([daemon.pid, worker ? worker.pid : null]) + '\\n')
})
setInterval(() => {}, 1000)
`

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A process whose parent is gone stays as a zombie where nobody reaps it; it runs no more.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Wait for a process that is not our child. */
async function gone(pid: number): Promise<boolean> {
  for (let tries = 0; tries < 300 && isAlive(pid); tries++)
    await new Promise((resolve) => setTimeout(resolve, 50))
  return !isAlive(pid)
}

describe.skipIf(process.platform !== 'linux')(
  'a parent that is killed by -9 takes its daemon along (G04)',
  () => {
    test.each([
      ['its pipe ends', false],
      ['a child of it holds the pipe open', true],
    ])('%s', async (_how, forks) => {
      const parent = spawn(process.execPath, ['-e', PARENT, ENTRY, tempDir(), ...(forks ? ['forks'] : [])], {
        env: { ...process.env, HELLO: HELLO.toString('base64') },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      onTestFinished(() => {
        parent.kill('SIGKILL')
      })
      const [daemon, worker] = await new Promise<[number, number | null]>((resolve) =>
        parent.stdout.once('data', (line: Buffer) => resolve(JSON.parse(line.toString()))),
      )
      onTestFinished(() => {
        if (worker !== null && isAlive(worker)) process.kill(worker, 'SIGKILL')
      })
      parent.kill('SIGKILL')
      expect(await gone(daemon)).toBe(true)
      if (worker !== null) expect(isAlive(worker)).toBe(true)
    })

    test('a daemon whose answers nobody reads any more ends', async () => {
      const daemon = await new Daemon().hello()
      daemon.child.stdout.destroy()
      daemon.write(request(1, 'ping'))
      expect((await daemon.exit).code).toBe(0)
    })
  },
)

test('nothing but frames gets out on stdout, whatever prints', async () => {
  const preload = join(tempDir(), 'preload.mjs')
  // Prints from the first line of ours on: before that nothing of ours could keep it away.
  writeFileSync(
    preload,
    `const theirs = console
     const print = () => { if (console !== theirs) { console.log('stray') } }
     setInterval(print, 1).unref()`,
  )
  const daemon = await new Daemon({ nodeArgs: ['--import', preload] }).hello()
  for (let i = 0; i < 200; i++) await daemon.result('ping')
  const { code, stderr } = await daemon.end()
  expect(code).toBe(0)
  expect(daemon.inbox.isBetweenFrames).toBe(true)
  expect(stderr).toContain('stray')
})

test('a log line never holds what is remembered', async () => {
  const daemon = await new Daemon({ args: ['--log-level', 'trace'] }).hello()
  const secret = 'hunter2-marker'
  await daemon.result('add', { memory: 'm', items: [textItem(secret)], message: secret, author: secret })
  await daemon.call('add', { memory: 'm', items: [{ content: { type: secret } }] })
  await daemon.call('add', { memory: 'm', items: [textItem(secret)], [secret]: 1 })
  await daemon.call(secret)
  await daemon.result('query', { memory: 'm' })
  const { stderr } = await daemon.end()
  expect(stderr).toContain('"method":"add"')
  expect(stderr).not.toContain(secret)
})

test('a log that nobody reads stops nothing (G05)', async () => {
  const daemon = await new Daemon({ args: ['--log-level', 'debug'] }).hello()
  daemon.child.stderr.pause()
  for (let i = 0; i < 20_000; i++) daemon.write(request(i, 'ping'))
  await daemon.inbox.count(20_001)
  daemon.child.stderr.resume()
  expect((await daemon.end()).code).toBe(0)
})

test('a store of a newer schema is refused with one sentence, and not a byte of it changes', async () => {
  const store = tempDir()
  await (await new Daemon({ store }).hello()).end()
  const file = join(store, 'mnem.db')
  const db = new DatabaseSync(file)
  db.exec('PRAGMA user_version = 99')
  db.close()
  const before = readFileSync(file)
  const { code, stderr } = await new Daemon({ store }).exit
  expect(code).toBe(3)
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  expect(stderr).toContain('Update mnem-sidecar')
  expect(readFileSync(file).equals(before)).toBe(true)
})

describe('a Node that is too old is told so in one sentence, before anything of ours is loaded', () => {
  test.each([
    ['itself', { node: '22.11.0' }, /needs Node 24 or newer, and .* is v/],
    ['by its SQLite', { sqlite: '3.51.2' }, /needs SQLite 3\.51\.3 or newer.* with SQLite 3\.51\.2/],
  ])('%s', async (_what, versions, sentence) => {
    const preload = join(tempDir(), 'old.mjs')
    const older = `{ ...process.versions, ...${JSON.stringify(versions)} }`
    writeFileSync(preload, `Object.defineProperty(process, 'versions', { value: ${older} })`)
    const { code, stderr } = await new Daemon({ nodeArgs: ['--import', preload] }).exit
    expect(code).toBe(4)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(stderr).toMatch(sentence)
  })
})
