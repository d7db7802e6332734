import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { type Answer, HELLO, Inbox, notification, request } from './frames.ts'

export const ENTRY = fileURLToPath(new URL('../bin/mnem-sidecar.mjs', import.meta.url))

/** A directory that is gone after the test. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'mnem-server-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
  stderr: string
}

export interface DaemonOptions {
  store?: string
  args?: string[]
  env?: Record<string, string>
  node?: string
  nodeArgs?: string[]
}

/** A daemon in a process of its own, spoken to over its pipes; killed when the test ends. */
export class Daemon {
  readonly child: ChildProcessWithoutNullStreams
  readonly inbox = new Inbox()
  readonly exit: Promise<Exit>
  stderr = ''
  private nextId = 0

  constructor({ store, args = [], env = {}, node = process.execPath, nodeArgs = [] }: DaemonOptions = {}) {
    const all = [...nodeArgs, ENTRY, 'stdio', '--store', store ?? tempDir(), ...args]
    this.child = spawn(node, all, { env: { ...process.env, ...env }, stdio: 'pipe' })
    onTestFinished(() => {
      this.child.kill('SIGKILL')
    })
    this.child.stdout.on('data', (chunk: Buffer) => this.inbox.push(chunk))
    this.child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      this.stderr += chunk
    })
    // The peer may be gone before all is written; the tests see that by its answers.
    this.child.stdin.on('error', () => {})
    this.exit = new Promise((resolve) => {
      this.child.on('close', (code, signal) => {
        this.inbox.close()
        resolve({ code, signal, stderr: this.stderr })
      })
    })
  }

  write(bytes: Buffer | string): void {
    this.child.stdin.write(bytes)
  }

  async hello(): Promise<this> {
    this.write(HELLO)
    await this.inbox.answer('hello')
    return this
  }

  /** Send a request and wait for its answer. */
  call(method: string, params: object = {}): Promise<Answer> {
    const id = `call ${++this.nextId}`
    this.write(request(id, method, params))
    return this.inbox.answer(id)
  }

  /** The result of a request; throws what it failed with. */
  async result(method: string, params: object = {}) {
    const { result, error } = await this.call(method, params)
    if (error !== undefined) throw new Error(`${error.data.kind}: ${error.message}`)
    return result
  }

  notify(method: string, params?: object): void {
    this.write(notification(method, params))
  }

  /** End in order. */
  async end(): Promise<Exit> {
    this.child.stdin.end()
    return this.exit
  }
}
