import type { Writable } from 'node:stream'
import { stringifyJson } from '@mnem/core'
import { wireError } from '@mnem/protocol'
import { Emitter, type Message, type MessageWriter } from './rpc.ts'

export interface WriterEvents {
  /** An answer to this id is on its way. */
  answered(id: string | number): void
  /** The output queue grew or shrank. */
  queued(bytes: number): void
  /** The peer reads no more: nothing can be sent. */
  gone(): void
}

type Outgoing = Message & { id?: string | number | null }

/** Join what is queued up to this many characters; more goes out at once. */
const JOIN = 1024 * 1024
/** Bytes handed to the output at once, so that it shows when a peer takes some of a long answer and not all. */
const PIECE = 256 * 1024

/**
 * Writes frames. What is written in one turn of the event loop goes out in one piece; stored JSON is copied in as it
 * stands. Never rejects: when the peer is gone there is nobody to tell.
 */
export class FrameWriter implements MessageWriter {
  private readonly output: Writable
  private readonly frameBytes: number
  private readonly events: WriterEvents
  private readonly errors = new Emitter<[Error, Message | undefined, number | undefined]>()
  private readonly closes = new Emitter<void>()
  private frames: string[] = []
  private joined = 0
  private scheduled = false
  private gone = false
  private flushWaiters: Array<() => void> = []
  /** What waits for the output to take the piece before it. */
  private pieces: Buffer[] = []
  private isWriting = false
  /** Bytes that the peer has not taken yet. */
  queuedBytes = 0
  /** Grows with each piece that the output took. */
  progress = 0

  constructor(output: Writable, frameBytes: number, events: WriterEvents) {
    this.output = output
    this.frameBytes = frameBytes
    this.events = events
    output.on('error', () => this.lose())
    output.on('close', () => this.lose())
  }

  get onError() {
    return this.errors.event
  }

  get onClose() {
    return this.closes.event
  }

  write(message: Message): Promise<void> {
    const { id } = message as Outgoing
    if (!this.gone) this.enqueue(this.encode(message as Outgoing))
    if (id !== undefined && id !== null) this.events.answered(id)
    return Promise.resolve()
  }

  end(): void {}

  dispose(): void {}

  /** Resolves when all that was written is out, or can't get out any more. */
  flushed(): Promise<void> {
    if (this.gone || this.queuedBytes === 0) return Promise.resolve()
    return new Promise((resolve) => this.flushWaiters.push(resolve))
  }

  /** The peer reads no more; drop what is queued. */
  lose(): void {
    if (this.gone) return
    this.gone = true
    this.frames = []
    this.pieces = []
    this.queuedBytes = 0
    this.settle()
    this.events.gone()
  }

  /** The body, or in place of one over the limit an error that says how to ask for less. */
  private encode(message: Outgoing): { body: string; bytes: number } {
    let bytes = Number.POSITIVE_INFINITY
    try {
      const body = stringifyJson(message)
      bytes = Buffer.byteLength(body)
      if (bytes <= this.frameBytes) return { body, bytes }
    } catch (error) {
      // V8 has a longest string; that answer is past our limit by far.
      if (!(error instanceof RangeError)) throw error
    }
    const limit = this.frameBytes
    const text = `The answer is larger than a frame of ${limit} bytes. Ask for less: a smaller \`limit\`, \`max_items\` or \`max_bytes\`, or no \`render\`.`
    const actual = Number.isFinite(bytes) ? { actual: bytes } : {}
    const error = wireError('too_large', text, { limit, ...actual })
    const body = stringifyJson({ jsonrpc: '2.0', id: message.id ?? null, error })
    return { body, bytes: Buffer.byteLength(body) }
  }

  private enqueue({ body, bytes }: { body: string; bytes: number }): void {
    const header = `Content-Length: ${bytes}\r\n\r\n`
    this.frames.push(header, body)
    this.joined += bytes + header.length
    this.queuedBytes += bytes + header.length
    this.events.queued(this.queuedBytes)
    if (this.joined >= JOIN) this.flush()
    else if (!this.scheduled) {
      this.scheduled = true
      // After the microtasks: answers of one transaction resolve one after another within those.
      process.nextTick(() => this.flush())
    }
  }

  private flush(): void {
    this.scheduled = false
    if (this.gone || this.frames.length === 0) return
    const data = this.frames.join('')
    const bytes = this.joined
    this.frames = []
    this.joined = 0
    if (bytes <= PIECE && !this.isWriting) {
      this.hand(data, bytes)
      return
    }
    const whole = Buffer.from(data)
    for (let at = 0; at < bytes; at += PIECE) this.pieces.push(whole.subarray(at, at + PIECE))
    this.writeNext()
  }

  /** Hand on the next piece once the one before is taken. */
  private writeNext(): void {
    if (this.isWriting) return
    const piece = this.pieces.shift()
    if (piece !== undefined) this.hand(piece, piece.length)
  }

  private hand(data: string | Buffer, bytes: number): void {
    this.isWriting = true
    this.output.write(data, (error) => {
      this.isWriting = false
      if (error || this.gone) return
      this.progress++
      this.queuedBytes -= bytes
      this.events.queued(this.queuedBytes)
      if (this.queuedBytes === 0) this.settle()
      this.writeNext()
    })
  }

  private settle(): void {
    const waiters = this.flushWaiters
    this.flushWaiters = []
    for (const resolve of waiters) resolve()
  }
}
