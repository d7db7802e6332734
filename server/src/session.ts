import type { Readable, Writable } from 'node:stream'
import {
  CAPABILITIES,
  initialize,
  type Limits,
  METHODS,
  PROTOCOL_VERSION,
  shutdown,
  type WireError,
} from '@mnem/protocol'
import { check, Dispatcher, isCancellation } from './dispatch.ts'
import { cancelled, failure, kindOf, toFailure } from './failure.ts'
import { FrameReader } from './frame-reader.ts'
import { FrameWriter } from './frame-writer.ts'
import type { StoresApi } from './handlers/handler.ts'
import { InFlight } from './in-flight.ts'
import type { RequestId } from './incoming.ts'
import type { Log } from './log.ts'
import { ReadGate } from './read-gate.ts'
import { type CancellationToken, createMessageConnection, type MessageConnection } from './rpc.ts'

/** What this server accepts at most, as `initialize` tells it. */
export const LIMITS: Limits = {
  frame_bytes: 32 * 1024 * 1024,
  item_bytes: 8 * 1024 * 1024,
  items_per_add: 10_000,
  name_bytes: 255,
  json_depth: 100,
}

/** Bytes of answers, or of requests under way, beyond which no more is read. */
const PAUSE_BYTES = 64 * 1024 * 1024
/** Requests under way beyond which no more is read. */
const PAUSE_REQUESTS = 20_000

/** Why a session takes no more requests. */
export type EndReason = 'eof' | 'exit' | 'framing' | 'input_error' | 'output_gone'

export interface SessionOptions {
  stores: StoresApi
  input: Readable
  output: Writable
  log: Log
  version: string
  /** Called once, when no more requests are taken; those that were taken are still being answered. */
  onEnd: (reason: EndReason) => void
  limits?: Limits
}

/** One connection: who may ask what when, from `initialize` to `exit`. */
export class Session {
  private readonly options: SessionOptions
  private readonly limits: Limits
  private readonly inFlight = new InFlight()
  private readonly reader: FrameReader
  private readonly writer: FrameWriter
  private readonly connection: MessageConnection
  private readonly dispatcher: Dispatcher
  private readonly gate: ReadGate
  private state: 'new' | 'ready' | 'shut_down' = 'new'
  private paused = false
  private ended = false

  constructor(options: SessionOptions) {
    this.options = options
    this.limits = options.limits ?? LIMITS
    this.reader = new FrameReader(options.input, this.limits.frame_bytes, {
      take: (id, bytes) => this.take(id, bytes),
      refuse: (id, error) => this.refuse(id, error),
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
    this.gate = new ReadGate(() => this.writer.queuedBytes < PAUSE_BYTES)
    this.dispatcher = new Dispatcher(options.stores, this.gate)
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

  /** Resolves when every request that was taken is answered, and the answers are out or can't get out. */
  async drained(): Promise<void> {
    await this.inFlight.atMost(0)
    await this.writer.flushed()
  }

  /** The peer reads no more: don't wait for it to take its answers. */
  loseOutput(): void {
    this.writer.lose()
  }

  private take(id: RequestId, bytes: number): boolean {
    const taken = this.inFlight.take(id, bytes)
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

  /** Read on or wait, by how much is under way. */
  private steer(): void {
    const { queuedBytes } = this.writer
    const { bytes, size } = this.inFlight
    if (!this.paused && (queuedBytes > PAUSE_BYTES || bytes > PAUSE_BYTES || size > PAUSE_REQUESTS)) {
      this.paused = true
      this.reader.pause()
    } else if (
      this.paused &&
      queuedBytes < PAUSE_BYTES / 2 &&
      bytes < PAUSE_BYTES / 2 &&
      size < PAUSE_REQUESTS / 2
    ) {
      this.paused = false
      this.reader.resume()
    }
    this.gate.update()
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
    const started = performance.now()
    let outcome = 'ok'
    try {
      return await this.route(method, params, token)
    } catch (error) {
      const failed = isCancellation(error) ? cancelled() : toFailure(error, method, log)
      outcome = kindOf(failed)
      return failed
    } finally {
      if (log.isLevelEnabled('debug')) {
        const ms = Math.round((performance.now() - started) * 1000) / 1000
        // A name that is none of ours may be anything, content too.
        log.debug({ method: METHODS.has(method) ? method : 'unknown', ms, outcome }, 'request')
      }
    }
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
    return this.dispatcher.dispatch(method, params, signalOf(token))
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
    check(initialize.params, params)
    this.state = 'ready'
    return {
      protocol: PROTOCOL_VERSION,
      server: { name: 'mnem-sidecar', version: this.options.version },
      capabilities: CAPABILITIES,
      limits: this.limits,
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
