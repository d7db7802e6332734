import type { Readable, Writable } from 'node:stream'
import {
  CAPABILITIES,
  type ErrorKind,
  initialize,
  type Limits,
  METHODS,
  PROTOCOL_VERSION,
  shutdown,
  type WireError,
  wireError,
} from '@mnem/protocol'
import { type Access, EVERYTHING } from '../access/access.ts'
import type { StoresApi } from '../handlers/handler.ts'
import type { Log } from '../log.ts'
import type { Readiness } from '../ops/health.ts'
import { anywhere, type BackupPath } from './backup-path.ts'
import { BufferBudget } from './buffer-budget.ts'
import { check, Dispatcher, isCancellation } from './dispatch.ts'
import { cancelled, failure, kindOf, toFailure } from './failure.ts'
import { FrameReader } from './frame-reader.ts'
import { FrameWriter } from './frame-writer.ts'
import { Imports } from './imports.ts'
import { InFlight } from './in-flight.ts'
import type { RequestId } from './incoming.ts'
import { ReadGate } from './read-gate.ts'
import {
  type CancellationToken,
  createMessageConnection,
  type Message,
  type MessageConnection,
} from './rpc.ts'

/** What this server accepts at most, as `initialize` tells it. */
export const LIMITS: Limits = {
  frame_bytes: 32 * 1024 * 1024,
  item_bytes: 8 * 1024 * 1024,
  items_per_add: 10_000,
  name_bytes: 255,
  json_depth: 100,
}

/** What one connection may hold before no more is read from it. */
export interface SessionBounds {
  /** Bytes of requests under way, and as many of answers that the peer has not taken. */
  bytes: number
  /** Requests under way. */
  requests: number
}

const BOUNDS: SessionBounds = { bytes: 64 * 1024 * 1024, requests: 20_000 }

/** Longest message before `initialize`, in bytes: room for the longest token. A stranger gets no more memory. */
const FIRST_FRAME_BYTES = 256 * 1024

/** Why a session takes no more requests. */
export type EndReason =
  | 'eof'
  | 'exit'
  | 'framing'
  | 'input_error'
  | 'output_gone'
  /** The token that it brought is none. */
  | 'unauthorized'
  /** Whoever made it ended it. */
  | 'told'

/** What is told of each request once it is answered. */
export interface AnsweredRequest {
  /** Name of the method; `unknown` for one that is none of the protocol's, which may be any text. */
  method: string
  /** `ok`, or the kind of the error. */
  outcome: string
  ms: number
}

export interface SessionOptions {
  stores: StoresApi
  input: Readable
  output: Writable
  log: Log
  version: string
  /** Called once, when no more requests are taken; those that were taken are still being answered. */
  onEnd: (reason: EndReason) => void
  /** Whether the store can be written to. */
  readiness: () => Readiness
  limits?: Limits
  bounds?: SessionBounds
  /** What all connections hold together. */
  budget?: BufferBudget
  /** What a connection with this token may do; throws `unauthorized`. Without it everybody may do everything. */
  admit?: (token: string | undefined) => Access
  /** Where backups go; anywhere by default. */
  backupPath?: BackupPath
  /** Told of each request. */
  onAnswered?: (request: AnsweredRequest) => void
  /** Milliseconds from which a request gets a line in the log; never by default. */
  slowMs?: number
}

/** One connection: who may ask what when, from `initialize` to `exit`. */
export class Session {
  private readonly options: SessionOptions
  private readonly limits: Limits
  private readonly bounds: SessionBounds
  private readonly budget: BufferBudget
  private readonly inFlight = new InFlight()
  private readonly reader: FrameReader
  private readonly writer: FrameWriter
  private readonly connection: MessageConnection
  private readonly dispatcher: Dispatcher
  private readonly gate: ReadGate
  private readonly imports: Imports
  private state: 'new' | 'ready' | 'shut_down' = 'new'
  private paused = false
  private ended = false
  private begun = 0
  /** What this connection may do, once it is initialized; whoever made the session may change it. */
  access: Access | undefined
  /** Name and version of the client, as it calls itself. */
  client: { name: string; version: string } | undefined
  /** Requests taken so far. */
  requests = 0

  constructor(options: SessionOptions) {
    this.options = options
    this.limits = options.limits ?? LIMITS
    this.bounds = options.bounds ?? BOUNDS
    this.budget = options.budget ?? new BufferBudget(Number.POSITIVE_INFINITY)
    const firstFrame = options.admit === undefined ? this.limits.frame_bytes : FIRST_FRAME_BYTES
    this.reader = new FrameReader(options.input, firstFrame, {
      take: (id, bytes) => this.take(id, bytes),
      refuse: (id, error) => this.refuse(id, error),
      failed: (error) => toFailure(error, 'unknown', options.log).toJson() as WireError,
      ended: (reason) => this.end(reason),
    })
    this.writer = new FrameWriter(options.output, this.limits.frame_bytes, {
      answered: (id) => {
        this.inFlight.answered(id)
        this.steer()
      },
      queued: () => this.steer(),
      gone: () => this.end('output_gone'),
    })
    this.gate = new ReadGate(
      () => this.writer.queuedBytes < this.bounds.bytes && !this.budget.isFull,
      this.budget.reads,
    )
    const { stores, readiness } = options
    this.imports = new Imports(stores)
    const { backupPath = anywhere } = options
    this.dispatcher = new Dispatcher(
      { stores, readiness, imports: this.imports, backupPath },
      this.gate,
      this.budget.long,
    )
    this.connection = createMessageConnection(this.reader, this.writer)
    this.connection.onRequest((method, params, token) => this.answer(method, params, token))
    this.connection.onNotification((method) => this.notice(method))
  }

  /** Begin to read. */
  listen(): void {
    this.connection.listen()
  }

  /** Take no more requests. */
  stop(): void {
    this.ended = true
    this.reader.dispose()
  }

  /** Take no more requests, as if the peer had ended its side. */
  finish(): void {
    this.end('told')
  }

  /** Resolves when every request that was taken is answered, and the answers are out or can't get out. */
  async drained(): Promise<void> {
    await this.inFlight.atMost(0)
    await this.imports.close()
    await this.writer.flushed()
  }

  /** The peer reads no more: don't wait for it to take its answers. */
  loseOutput(): void {
    this.writer.lose()
  }

  /** Tell the peer, before it asked anything, why nothing comes of it. */
  turnAway(kind: ErrorKind, message: string): void {
    this.writer.write({ jsonrpc: '2.0', id: null, error: wireError(kind, message) } as Message)
  }

  /** Requests taken and not answered yet. */
  get underWay(): number {
    return this.inFlight.size
  }

  get isInitialized(): boolean {
    return this.state !== 'new'
  }

  /** Bytes that the peer keeps us holding: answers that it has not taken, and the part of a message that it has sent. */
  get heldForPeer(): number {
    const isMidMessage = this.reader.isInFrame && !this.paused
    // A frame that has begun with its header alone is waited for as well.
    return this.writer.queuedBytes + (isMidMessage ? Math.max(1, this.reader.partialBytes) : 0)
  }

  /** Changes whenever the peer takes or sends something. */
  get progress(): number {
    return this.writer.progress + this.reader.progress
  }

  /** Read on or wait, by how much is under way. */
  steer(): void {
    const { queuedBytes } = this.writer
    const { bytes, size } = this.inFlight
    const { bounds } = this
    this.budget.set(this, queuedBytes + bytes)
    const isFull = this.budget.isFull
    if (!this.paused) {
      if (isFull || queuedBytes > bounds.bytes || bytes > bounds.bytes || size >= bounds.requests) {
        this.paused = true
        this.reader.pause()
      }
    } else if (
      !isFull &&
      queuedBytes <= bounds.bytes / 2 &&
      bytes <= bounds.bytes / 2 &&
      size <= bounds.requests / 2
    ) {
      this.paused = false
      this.reader.resume()
    }
    this.gate.update()
  }

  private take(id: RequestId, bytes: number): boolean {
    const taken = this.inFlight.take(id, bytes)
    if (taken) this.requests++
    this.steer()
    return taken
  }

  private refuse(id: RequestId | null, error: WireError): void {
    this.options.log.warn({ kind: error.data.kind, reason: error.message }, 'refused a message')
    const answer = { jsonrpc: '2.0', id, error }
    // Not through the connection: it never saw this message. The id is not taken, so nothing else answers to it.
    if (id === null || !this.inFlight.has(id)) this.writer.write(answer)
    else this.writer.write({ ...answer, id: null } as typeof answer)
  }

  private end(reason: EndReason): void {
    if (this.ended) return
    this.stop()
    this.options.onEnd(reason)
  }

  private notice(method: string): void {
    if (method === 'exit') this.end('exit')
    else this.options.log.debug('ignored a notification that is not known')
  }

  private async answer(method: string, params: unknown, token: CancellationToken): Promise<unknown> {
    const { log } = this.options
    const number = ++this.begun
    const started = performance.now()
    let outcome = 'ok'
    try {
      return await this.route(method, params, token)
    } catch (error) {
      const failed = isCancellation(error) ? cancelled() : toFailure(error, method, log)
      outcome = kindOf(failed)
      return failed
    } finally {
      this.report(number, method, outcome, performance.now() - started)
    }
  }

  private report(number: number, method: string, outcome: string, elapsed: number): void {
    const { log, onAnswered, slowMs = Number.POSITIVE_INFINITY } = this.options
    const ms = Math.round(elapsed * 1000) / 1000
    // A name that is none of ours may be anything, content too.
    const request = { method: METHODS.has(method) ? method : 'unknown', outcome, ms }
    onAnswered?.(request)
    // Not the peer's own id, which may be any text: counted on this connection.
    if (ms >= slowMs) log.warn({ request: number, ...request }, 'slow request')
    else log.debug({ request: number, ...request }, 'request')
  }

  private route(method: string, params: unknown, token: CancellationToken): Promise<unknown> | unknown {
    if (method === 'initialize') return this.initialize(params)
    if (this.state === 'new') {
      throw failure(
        'not_initialized',
        'The first request of a connection must be initialize; send that first.',
      )
    }
    if (this.state === 'shut_down') {
      throw failure('shutting_down', 'This connection was shut down; open another one.')
    }
    if (method === 'shutdown') return this.shutdown(params)
    return this.dispatcher.dispatch(method, params, signalOf(token), this.access ?? EVERYTHING)
  }

  private initialize(params: unknown) {
    if (this.state !== 'new') {
      throw failure('invalid_request', 'This connection is initialized already; send initialize once.')
    }
    const { protocol } = (params ?? {}) as { protocol?: unknown }
    // Before the rest is looked at: another version may have other params.
    if (Number.isSafeInteger(protocol) && protocol !== PROTOCOL_VERSION) {
      throw failure(
        'unsupported_protocol',
        `This server speaks protocol ${PROTOCOL_VERSION}; use a client that does, or another version of mnem-sidecar.`,
        { supported: [PROTOCOL_VERSION] },
      )
    }
    const { client, token } = check(initialize.params, params)
    this.access = this.admit(token)
    this.client = client
    this.reader.frameBytes = this.limits.frame_bytes
    this.state = 'ready'
    return {
      protocol: PROTOCOL_VERSION,
      server: { name: 'mnem-sidecar', version: this.options.version },
      capabilities: CAPABILITIES,
      limits: this.limits,
    }
  }

  private admit(token: string | undefined): Access {
    try {
      return this.options.admit?.(token) ?? EVERYTHING
    } catch (error) {
      // One try a connection; the answer still goes out.
      this.end('unauthorized')
      throw error
    }
  }

  private async shutdown(params: unknown): Promise<null> {
    check(shutdown.params, params)
    this.state = 'shut_down'
    await this.inFlight.atMost(1)
    return null
  }
}

function signalOf(token: CancellationToken): AbortSignal {
  const controller = new AbortController()
  if (token.isCancellationRequested) controller.abort()
  else token.onCancellationRequested(() => controller.abort())
  return controller.signal
}
