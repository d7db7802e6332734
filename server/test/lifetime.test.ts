import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Lifetime, type LifetimeOptions } from '../src/lifetime.ts'
import { Daemon, ENTRY, tempDir } from './daemon.ts'
import { FrameParser, HELLO, request, textItem } from './frames.ts'

/** A lifetime whose end is looked at instead of carried out. */
function open(change: Partial<LifetimeOptions> = {}) {
  const left: unknown[] = []
  const lifetime = new Lifetime({
    finish: async () => {},
    leave: (...how) => left.push(how),
    parent: process.ppid,
    isOutputGone: () => false,
    ...change,
  })
  return { lifetime, left }
}

describe('the end', () => {
  it('comes once, for the first reason', async () => {
    const finish = vi.fn(async () => {})
    const { lifetime, left } = open({ finish })
    lifetime.end('eof')
    lifetime.end('SIGTERM')
    await vi.waitFor(() => expect(left).toEqual([[0, 'eof', true]]))
    expect(finish).toHaveBeenCalledTimes(1)
  })

  it.each([
    ['SIGTERM', 10_000],
    ['parent_gone', 3_000],
  ] as const)('by %s waits for %i ms at most', (reason, bound) => {
    vi.useFakeTimers()
    onTestFinished(() => {
      vi.useRealTimers()
    })
    const { lifetime, left } = open({ finish: () => new Promise(() => {}) })
    lifetime.end(reason)
    vi.advanceTimersByTime(bound - 1)
    expect(left).toEqual([])
    vi.advanceTimersByTime(1)
    expect(left).toEqual([[1, reason, false]])
  })

  it('with a store that fails to close is an end with a fault', async () => {
    const { lifetime, left } = open({ finish: () => Promise.reject(new Error('disk')) })
    lifetime.end('exit')
    await vi.waitFor(() => expect(left).toEqual([[1, 'exit', false]]))
  })
})

describe('a daemon', () => {
  it('whose parent is another process than it was told ends at once', async () => {
    const { code, stderr } = await new Daemon({ args: ['--parent-pid', '1'] }).exit
    expect(code).toBe(0)
    expect(stderr).toContain('"reason":"parent_gone"')
  })

  it('whose parent is the one it was told serves', async () => {
    const daemon = await new Daemon({ args: ['--parent-pid', String(process.pid)] }).hello()
    expect((await daemon.end()).stderr).toContain('"reason":"eof"')
  })

  it('ends at once on a second signal, though its peer takes no answers', async () => {
    const store = tempDir()
    const daemon = new Daemon({ store })
    daemon.child.stdout.pause()
    daemon.write(HELLO)
    // The answers to these fill the pipe, so that the first signal has something to wait for.
    daemon.write(request(1, 'add', { memory: 'm', items: [textItem('x'.repeat(4_000_000))] }))
    for (let id = 2; id < 6; id++) daemon.write(request(id, 'query', { memory: 'm' }))
    const walBytes = () => statSync(join(store, 'mnem.db-wal')).size
    await vi.waitFor(() => expect(walBytes()).toBeGreaterThan(4_000_000), 20_000)
    const second = setInterval(() => daemon.child.kill('SIGTERM'), 200)
    onTestFinished(() => clearInterval(second))
    const exited = new Promise((resolve) => daemon.child.on('exit', resolve))
    expect(await exited).toBe(1)
  })

  it('answers a peer that begins to read late, all of it', async () => {
    const daemon = new Daemon()
    daemon.child.stdout.pause()
    daemon.write(HELLO)
    daemon.write(request(1, 'add', { memory: 'm', items: [textItem('x'.repeat(1_000_000))] }))
    for (let id = 2; id < 102; id++) daemon.write(request(id, 'query', { memory: 'm' }))
    daemon.child.stdin.end()
    daemon.child.stdout.resume()
    expect((await daemon.exit).code).toBe(0)
    expect(daemon.inbox.answers).toHaveLength(102)
  })

  it('goes on when nobody holds its log any more', async () => {
    const daemon = await new Daemon({ args: ['--log-level', 'debug'] }).hello()
    daemon.child.stderr.destroy()
    for (let i = 0; i < 100; i++) await daemon.result('ping')
    expect((await daemon.end()).code).toBe(0)
  })

  it('is not bothered by what the environment brings along', async () => {
    const env = {
      NODE_DEBUG: '*',
      NODE_PATH: '/nowhere',
      NODE_V8_COVERAGE: tempDir(),
      FORCE_COLOR: '1',
      DEBUG: '*',
    }
    const daemon = await new Daemon({ env }).hello()
    await daemon.result('add', { memory: 'm', items: [textItem('a')] })
    expect((await daemon.end()).code).toBe(0)
    expect(daemon.inbox.isBetweenFrames).toBe(true)
  })

  it('serves from a file into a file', async () => {
    const dir = tempDir()
    const [input, output] = [join(dir, 'in'), join(dir, 'out')]
    writeFileSync(input, Buffer.concat([HELLO, request(1, 'ping')]))
    const files = [openSync(input, 'r'), openSync(output, 'w')]
    const child = spawn(process.execPath, [ENTRY, 'stdio', '--store', join(dir, 'store')], {
      stdio: [...files, 'ignore'],
    })
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    for (const file of files) closeSync(file)
    expect(await new Promise((resolve) => child.on('exit', resolve))).toBe(0)
    expect(new FrameParser().push(readFileSync(output)).map(({ answer }) => answer.id)).toEqual(['hello', 1])
  })
})

/** G04 c over a real pipe, as Python makes them: Node's own are sockets. */
describe.skipIf(process.platform === 'win32')('a daemon whose output is a pipe without a reader', () => {
  it('ends with the first answer that it can not give', async () => {
    // `true` holds the read end of the output, and ends.
    const script = `{ "$0" "$1" stdio --store "$2"; echo $? >&3; } | true`
    const shell = spawn('sh', ['-c', script, process.execPath, ENTRY, tempDir()], {
      stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
      detached: true,
    })
    onTestFinished(() => {
      try {
        if (shell.pid !== undefined) process.kill(-shell.pid, 'SIGKILL')
      } catch {
        // All of them are gone.
      }
    })
    const [input, , log, status] = shell.stdio as unknown as [Writable, null, Readable, Readable]
    input.on('error', () => {})
    let lines = ''
    log.on('data', (data: Buffer) => {
      lines += data
    })
    input.write(HELLO)
    // Asked again, in case `true` was still there the first time.
    const asking = setInterval(() => input.write(request(1, 'ping')), 20)
    onTestFinished(() => clearInterval(asking))
    const code = await new Promise<string>((resolve) =>
      status.once('data', (data: Buffer) => resolve(data.toString().trim())),
    )
    expect(code).toBe('0')
    expect(JSON.parse(lines.trimEnd().split('\n').at(-1) as string)).toMatchObject({ reason: 'output_gone' })
  })
})
