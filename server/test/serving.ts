import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { onTestFinished } from 'vitest'
import { ENTRY, type Exit, tempDir } from './daemon.ts'
import { type Answer, Inbox, notification, request } from './frames.ts'

export interface ServeOptions {
  store?: string
  args?: string[]
  env?: Record<string, string>
  nodeArgs?: string[]
}

/** A line of the log. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever stands in a line.
export type LogLine = Record<string, any>

/** `mnem-sidecar serve` in a process of its own; killed when the test ends. */
export class Server {
  readonly child: ChildProcess
  readonly exit: Promise<Exit>
  stderr = ''
  private waiters: Array<() => void> = []
  private ended = false

  constructor({ store = tempDir(), args = [], env = {}, nodeArgs = [] }: ServeOptions = {}) {
    this.child = spawn(process.execPath, [...nodeArgs, ENTRY, 'serve', '--store', store, ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    onTestFinished(() => {
      this.child.kill('SIGKILL')
    })
    this.child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      this.stderr += chunk
      this.wake()
    })
    this.exit = new Promise((resolve) => {
      this.child.on('close', (code, signal) => {
        this.ended = true
        this.wake()
        resolve({ code, signal, stderr: this.stderr })
      })
    })
  }

  /** A server that is ready. */
  static async start(options: ServeOptions = {}): Promise<Server> {
    const server = new Server(options)
    await server.line('ready')
    return server
  }

  get lines(): LogLine[] {
    return this.stderr
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line))
  }

  /** The first line with this message that also has what is asked for, once it is there. */
  async line(msg: string, having: (line: LogLine) => boolean = () => true): Promise<LogLine> {
    for (;;) {
      const found = this.lines.find((line) => line.msg === msg && having(line))
      if (found !== undefined) return found
      if (this.ended) throw new Error(`the server ended without ${JSON.stringify(msg)}:\n${this.stderr}`)
      await new Promise<void>((resolve) => this.waiters.push(resolve))
    }
  }

  /** The port of the address that it listens on first with this transport. */
  port(transport: 'tcp' | 'tls'): number {
    const { listen } = this.lines.find(({ msg }) => msg === 'ready') as { listen: string[] }
    return Number(
      listen
        .find((address) => address.startsWith(transport))
        ?.split(':')
        .at(-1),
    )
  }

  get httpPort(): number {
    return (this.lines.find(({ msg }) => msg === 'ready') as LogLine).http_port
  }

  async get(path: string): Promise<{ status: number; body: string }> {
    const response = await fetch(`http://127.0.0.1:${this.httpPort}${path}`)
    return { status: response.status, body: await response.text() }
  }

  /** The value of a metric, its labels as they stand in the text. */
  async metric(name: string): Promise<number> {
    const { body } = await this.get('/metrics')
    const line = body.split('\n').find((one) => one.startsWith(`${name} `))
    return line === undefined ? 0 : Number(line.slice(name.length + 1))
  }

  /** Resident bytes of the process. */
  get residentBytes(): number {
    const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }

  private wake(): void {
    const waiters = this.waiters
    this.waiters = []
    for (const resolve of waiters) resolve()
  }
}

type Target = string | number | { tls: number; ca?: Buffer; cert?: Buffer; key?: Buffer }

/** A raw peer on a socket: a path, a port of 127.0.0.1, or TLS on one. */
export class SocketPeer {
  readonly socket: Socket
  readonly inbox = new Inbox()
  readonly closed: Promise<void>
  private nextId = 0

  constructor(target: Target, { reading = true } = {}) {
    this.socket = open(target)
    onTestFinished(() => {
      this.socket.destroy()
    })
    this.socket.on('error', () => {})
    if (reading) this.socket.on('data', (chunk: Buffer) => this.inbox.push(chunk))
    this.closed = new Promise((resolve) => {
      this.socket.on('close', () => {
        this.inbox.close()
        resolve()
      })
    })
  }

  write(bytes: Buffer | string): void {
    this.socket.write(bytes)
  }

  async hello(token?: string): Promise<this> {
    const answer = await this.initialize(token)
    if (answer.error !== undefined) throw new Error(`${answer.error.data.kind}: ${answer.error.message}`)
    return this
  }

  initialize(token?: string): Promise<Answer> {
    const client = { name: 'test', version: '0' }
    return this.call('initialize', { protocol: 1, client, ...(token === undefined ? {} : { token }) })
  }

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

  /** The kind of error that a request fails with. */
  async kind(method: string, params: object = {}): Promise<string | undefined> {
    return (await this.call(method, params)).error?.data.kind
  }

  notify(method: string, params?: object): void {
    this.write(notification(method, params))
  }
}

function open(target: Target): Socket {
  if (typeof target === 'string') return connect(target)
  if (typeof target === 'number') return connect({ host: '127.0.0.1', port: target })
  const { tls, ...files } = target
  return connectTls({ host: '127.0.0.1', port: tls, ...files })
}

/** Run a command of the command line to its end. */
export function run(...args: string[]) {
  return spawnSync(process.execPath, [ENTRY, ...args], { encoding: 'utf8', timeout: 30_000 })
}

/** Make a token; gives it. */
export function makeToken(file: string, name: string, ...args: string[]): string {
  const { status, stdout, stderr } = run('token', 'new', '--file', file, '--name', name, ...args)
  if (status !== 0) throw new Error(stderr)
  return stdout.trimEnd().split('\n').at(-1) as string
}

export interface Certificate {
  certFile: string
  keyFile: string
  cert: Buffer
  key: Buffer
}

/** A certificate for 127.0.0.1 that signs itself, or that another one signed. */
export function makeCertificate(dir: string, name: string, signer?: Certificate): Certificate {
  const certFile = join(dir, `${name}.crt`)
  const keyFile = join(dir, `${name}.key`)
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile]
  const signing = signer === undefined ? [] : ['-CA', signer.certFile, '-CAkey', signer.keyFile]
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  execFileSync(
    'openssl',
    ['req', '-x509', ...key, '-out', certFile, '-days', '2', '-subj', `/CN=${name}`, ...names, ...signing],
    { stdio: 'ignore' },
  )
  return { certFile, keyFile, cert: readFileSync(certFile), key: readFileSync(keyFile) }
}
