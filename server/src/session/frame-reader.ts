import type { Readable } from 'node:stream'
import { type WireError, wireError } from '@mnem/protocol'
import { FramingError, HEADER_BYTES, readHeader } from './frame-header.ts'
import {
  type Incoming,
  isRequestId,
  type Notification,
  type Request,
  type RequestId,
  readBody,
} from './incoming.ts'
import { type Disposable, Emitter, type Message, type MessageReader, type PartialMessageInfo } from './rpc.ts'

/** What the reader tells of beside the messages. */
export interface ReaderEvents {
  /** A request is about to be handed on: false when its id is still in use. */
  take(id: RequestId, bytes: number): boolean
  /** A message must be answered with this error. */
  refuse(id: RequestId | null, error: WireError): void
  /** A bug of our own in reading; gives what the peer is told of it. It must not be everybody's end. */
  failed(error: unknown): WireError
  /** Nothing more will be read: the peer ended its side, or broke the framing. */
  ended(reason: 'eof' | 'framing' | 'input_error'): void
}

const EMPTY = Buffer.alloc(0)
const FIRST_BUFFER = 64 * 1024

/**
 * Reads frames of `Content-Length: <bytes>`, blank line, body. In place of vscode-jsonrpc's own reader, which answers
 * nothing to what it can't read and knows no limits: here each malformed message is answered, or the connection ends,
 * and neither a header nor a body over the limit is kept.
 */
export class FrameReader implements MessageReader {
  private readonly input: Readable
  /** Longest body that is taken, in bytes. */
  frameBytes: number
  /** Grows with each piece of input that is read. */
  progress = 0
  private readonly events: ReaderEvents
  private readonly errors = new Emitter<Error>()
  private readonly closes = new Emitter<void>()
  private readonly partials = new Emitter<PartialMessageInfo>()
  private callback: ((message: Message) => void) | undefined
  /** Bytes of a header that has not wholly arrived. */
  private head: Buffer = EMPTY
  private body: PartialBody | undefined
  private stopped = false

  constructor(input: Readable, frameBytes: number, events: ReaderEvents) {
    this.input = input
    this.frameBytes = frameBytes
    this.events = events
  }

  get onError() {
    return this.errors.event
  }

  get onClose() {
    return this.closes.event
  }

  get onPartialMessage() {
    return this.partials.event
  }

  listen(callback: (message: Message) => void): Disposable {
    this.callback = callback
    this.input.on('data', (chunk: Buffer) => this.read(chunk))
    this.input.on('end', () => this.end())
    this.input.on('error', () => this.stop('input_error'))
    return { dispose: () => this.dispose() }
  }

  /** Bytes kept of a frame that has not wholly arrived. */
  get partialBytes(): number {
    return this.head.length + (this.body?.received ?? 0)
  }

  /** Whether a frame has begun that has not wholly arrived. */
  get isInFrame(): boolean {
    return this.head.length > 0 || this.body !== undefined
  }

  /** Read no more until `resume`. */
  pause(): void {
    this.input.pause()
  }

  resume(): void {
    if (!this.stopped) this.input.resume()
  }

  /** Read nothing more. What was handed on before goes its way. */
  dispose(): void {
    this.stopped = true
    this.head = EMPTY
    this.body = undefined
    this.input.pause()
  }

  private read(chunk: Buffer): void {
    let at = 0
    this.progress++
    try {
      while (at < chunk.length && !this.stopped) {
        at = this.body === undefined ? this.readHead(chunk, at) : this.readBody(this.body, chunk, at)
      }
    } catch (error) {
      const answer =
        error instanceof FramingError
          ? wireError('parse_error', `The frame can't be read: ${error.message}. The connection closes.`)
          : this.events.failed(error)
      this.refuse(null, answer)
      this.stop('framing')
    }
  }

  /** Read from a header; gives the place behind what was taken. */
  private readHead(chunk: Buffer, at: number): number {
    const before = this.head.length
    const piece = chunk.subarray(at, at + HEADER_BYTES - before)
    const bytes = before === 0 ? piece : Buffer.concat([this.head, piece])
    const header = readHeader(bytes)
    if (header === undefined) {
      // A copy, so that the chunk does not stay in memory for a few bytes of it.
      this.head = Buffer.from(bytes)
      return at + piece.length
    }
    this.head = EMPTY
    const { contentLength, size } = header
    if (contentLength > this.frameBytes) this.refuseLength(contentLength)
    else if (contentLength === 0) this.deliver(EMPTY)
    else this.body = new PartialBody(contentLength)
    return at + size - before
  }

  private readBody(body: PartialBody, chunk: Buffer, at: number): number {
    const piece = chunk.subarray(at, at + body.missing)
    const whole = body.append(piece)
    if (whole !== undefined) {
      this.body = undefined
      this.deliver(whole)
    }
    return at + piece.length
  }

  private deliver(body: Buffer): void {
    const incoming: Incoming = readBody(body)
    if (incoming.kind === 'refused') {
      this.refuse(incoming.id, incoming.error)
      if (incoming.fatal) this.stop('framing')
    } else if (incoming.kind === 'request') this.deliverRequest(incoming.message, body.length)
    else if (isUsable(incoming.message)) this.callback?.(incoming.message)
  }

  private deliverRequest(message: Request, bytes: number): void {
    if (this.events.take(message.id, bytes)) this.callback?.(message)
    else {
      const text =
        'This id is in use by a request under way (1 and "1" count as the same); choose another one.'
      this.refuse(null, wireError('invalid_request', text))
    }
  }

  private refuse(id: RequestId | null, error: WireError): void {
    this.events.refuse(id, error)
  }

  private refuseLength(actual: number): void {
    const message = `A frame has at most ${this.frameBytes} bytes, and this one has ${actual}; send less in one request. The connection closes.`
    this.refuse(null, wireError('too_large', message, { limit: this.frameBytes, actual }))
    this.stop('framing')
  }

  private end(): void {
    if (this.stopped) return
    if (this.isInFrame) {
      this.refuse(null, wireError('parse_error', 'The input ended in the middle of a frame.'))
    }
    this.stop('eof')
  }

  private stop(reason: 'eof' | 'framing' | 'input_error'): void {
    if (this.stopped) return
    this.dispose()
    this.events.ended(reason)
  }
}

/** vscode-jsonrpc trips over a cancellation without an id. */
function isUsable({ method, params }: Notification): boolean {
  if (method !== '$/cancelRequest') return true
  return params !== undefined && params !== null && isRequestId((params as { id?: unknown }).id)
}

/** A body as it arrives. Memory grows with what came, not with what the header promised. */
class PartialBody {
  private readonly length: number
  private bytes: Buffer = EMPTY
  private filled = 0

  constructor(length: number) {
    this.length = length
  }

  get received(): number {
    return this.filled
  }

  get missing(): number {
    return this.length - this.filled
  }

  /** Take the next piece; gives the body when it is whole. */
  append(piece: Buffer): Buffer | undefined {
    if (this.filled === 0 && piece.length === this.length) return piece
    this.reserve(this.filled + piece.length)
    piece.copy(this.bytes, this.filled)
    this.filled += piece.length
    return this.filled === this.length ? this.bytes.subarray(0, this.length) : undefined
  }

  private reserve(size: number): void {
    if (size <= this.bytes.length) return
    const grown = Buffer.allocUnsafe(
      Math.min(this.length, Math.max(size, 2 * this.bytes.length, FIRST_BUFFER)),
    )
    this.bytes.copy(grown, 0, 0, this.filled)
    this.bytes = grown
  }
}
