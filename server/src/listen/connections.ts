import type { Socket } from 'node:net'
import type { Limits } from '@mnem/protocol'
import { type Access, EVERYTHING } from '../access/access.ts'
import { hashToken, type Tokens } from '../access/tokens.ts'
import type { Config } from '../config/options.ts'
import type { StoresApi } from '../handlers/handler.ts'
import type { Log } from '../log.ts'
import type { Readiness } from '../ops/health.ts'
import type { Metrics } from '../ops/metrics.ts'
import { below } from '../session/backup-path.ts'
import { BufferBudget } from '../session/buffer-budget.ts'
import { failure } from '../session/failure.ts'
import type { AnsweredRequest } from '../session/session.ts'
import type { Address } from './address.ts'
import { Connection, type Ending } from './connection.ts'

/** How often connections are looked at. */
const LOOK_MS = 1000
/** A peer that has kept us waiting for so long counts as stalled. */
const STALLED_MS = 1000
/** Connections over the limit that are told so at once; further ones are just closed. */
const TURNED_AWAY = 64

export interface ConnectionsOptions {
  config: Config
  limits: Limits
  stores: StoresApi
  readiness: () => Readiness
  metrics: Metrics
  log: Log
  version: string
  /** The tokens in force; undefined where none are asked for. */
  tokens: Tokens | undefined
}

type Transport = Address['transport']

/** All clients over sockets, and the bounds that keep any of them from disturbing the others. */
export class Connections {
  private readonly options: ConnectionsOptions
  private readonly open = new Set<Connection>()
  private readonly budget: BufferBudget
  private readonly timer: NodeJS.Timeout
  private tokens: Tokens | undefined
  private admitted = 0
  private count = 0
  private stopping = false

  constructor(options: ConnectionsOptions) {
    this.options = options
    this.tokens = options.tokens
    this.budget = new BufferBudget(options.config.max_buffered_bytes)
    this.timer = setInterval(() => this.look(), LOOK_MS)
    this.timer.unref()
  }

  /** Count a connection that came in; far over the limit, where there is no room even to say so, it is just closed. */
  admit(socket: Socket): boolean {
    if (this.stopping || this.admitted >= this.options.config.max_connections + TURNED_AWAY) {
      if (!this.stopping) this.options.metrics.connectionRefused('too_many')
      socket.on('error', () => {})
      socket.destroy()
      return false
    }
    this.admitted++
    socket.once('close', () => {
      this.admitted--
    })
    return true
  }

  /** Speak with a client that was admitted; where there are enough, only to say so. */
  accept(socket: Socket, transport: Transport): void {
    if (this.open.size >= this.options.config.max_connections) {
      this.turnAway(socket)
      return
    }
    const { config, stores, readiness, metrics, version, limits } = this.options
    const number = ++this.count
    const log = this.options.log.child({ connection: number, transport })
    metrics.connectionOpened(transport)
    let hash: Buffer | undefined
    const connection: Connection = new Connection(socket, {
      stores,
      readiness,
      log,
      version,
      limits,
      bounds: { bytes: config.max_connection_bytes, requests: config.max_in_flight },
      budget: this.budget,
      backupPath: below(config.backup_dir),
      slowMs: config.slow_request,
      initializeMs: config.initialize_timeout,
      admit: (token) => {
        hash = token === undefined ? undefined : hashToken(token)
        const access = this.accessOf(hash)
        connection.tokenHash = hash
        return access
      },
      onAnswered: (request: AnsweredRequest) => metrics.request(request),
      onGone: (gone, ending) => this.forget(gone, transport, ending),
    })
    this.open.add(connection)
  }

  /** A TLS handshake came to nothing. */
  handshakeFailed(code: string): void {
    this.options.metrics.connectionRefused('tls_handshake')
    this.options.log.debug({ code }, 'a TLS handshake failed')
  }

  /** Other tokens are in force from now on; connections whose token is none any more end. */
  renewTokens(tokens: Tokens): void {
    this.tokens = tokens
    for (const connection of this.open) {
      if (connection.session.isInitialized)
        connection.renewAccess(connection.tokenHash && tokens.find(connection.tokenHash))
    }
  }

  /** Take no more, answer what was taken, and close them all; resolves when they are gone. */
  async stop(boundMs: number): Promise<void> {
    this.stopping = true
    for (const connection of this.open) connection.close('stopping')
    const cut = setTimeout(() => {
      for (const connection of this.open) connection.close('stopping', true)
    }, boundMs)
    await Promise.all(Array.from(this.open, ({ gone }) => gone))
    clearTimeout(cut)
    clearInterval(this.timer)
  }

  private accessOf(hash: Buffer | undefined): Access {
    if (this.tokens === undefined) return EVERYTHING
    if (hash === undefined)
      throw failure(
        'unauthorized',
        'This server asks for a token; give one (the Python client: token=, MNEM_TOKEN or MNEM_TOKEN_FILE).',
      )
    const access = this.tokens.find(hash)
    if (access === undefined)
      throw failure(
        'unauthorized',
        'The token is not known here, or was withdrawn; ask for another one (mnem-sidecar token new).',
      )
    return access
  }

  private turnAway(socket: Socket): void {
    const limit = this.options.config.max_connections
    this.options.metrics.connectionRefused('too_many')
    socket.on('error', () => {})
    const error = failure('busy', `${limit} connections are open already; try again when one has closed.`)
    const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: error.toJson() })
    socket.end(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    socket.resume()
    socket.setTimeout(LOOK_MS, () => socket.destroy())
  }

  private forget(connection: Connection, transport: Transport, ending: Ending): void {
    this.open.delete(connection)
    this.budget.remove(connection.session)
    this.options.metrics.connectionClosed(transport, ending)
  }

  /** End those that keep us waiting too long, or idle; and while they hold too much, those that hold most. */
  private look(): void {
    const { idle_timeout, stall_timeout } = this.options.config
    const now = performance.now()
    for (const connection of this.open) {
      const stalled = connection.stalledFor(now)
      this.budget.setStalled(connection.session, stalled >= STALLED_MS)
      if (stalled >= stall_timeout) connection.close('stalled', true)
      else if (idle_timeout > 0 && connection.idleFor(now) >= idle_timeout) connection.close('idle')
    }
    this.shed()
  }

  private shed(): void {
    const holders = Array.from(this.open)
      .filter(({ session }) => session.heldForPeer > 0)
      .sort((a, b) => b.session.heldForPeer - a.session.heldForPeer)
    const limit = this.options.config.max_buffered_bytes
    let held = holders.reduce((sum, { session }) => sum + session.heldForPeer, 0)
    for (const connection of holders) {
      if (held <= 2 * limit && !this.budget.isOverrun) return
      held -= connection.session.heldForPeer
      connection.close('buffers_full', true)
    }
  }
}
