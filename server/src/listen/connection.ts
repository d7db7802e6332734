import type { Socket } from 'node:net'
import type { Access } from '../access/access.ts'
import type { Log } from '../log.ts'
import { PROBE_NAME } from '../ops/probe.ts'
import { type EndReason, Session, type SessionOptions } from '../session/session.ts'

/** How long a peer that was answered may take to close its side. */
const LINGER_MS = 2000

/** Why a connection ended. */
export type Ending =
  | EndReason
  | 'idle'
  | 'stalled'
  | 'initialize_timeout'
  | 'token_withdrawn'
  | 'buffers_full'
  | 'stopping'

export interface ConnectionOptions extends Omit<SessionOptions, 'input' | 'output' | 'log' | 'onEnd'> {
  log: Log
  /** Milliseconds until it must be initialized. */
  initializeMs: number
  /** Called once, when it is gone. */
  onGone: (connection: Connection, ending: Ending) => void
}

/** One client over a socket: a session, and the socket's own life around it. */
export class Connection {
  private readonly socket: Socket
  private readonly options: ConnectionOptions
  private readonly timer: NodeJS.Timeout
  private readonly opened = performance.now()
  private ending: Ending | undefined
  private seen = { progress: -1, requests: 0, at: this.opened, usedAt: this.opened }
  readonly session: Session
  /** Resolves when the socket is closed. */
  readonly gone: Promise<void>
  /** SHA-256 of its token, to be looked up again when the tokens change. */
  tokenHash: Buffer | undefined

  constructor(socket: Socket, options: ConnectionOptions) {
    this.socket = socket
    this.options = options
    this.session = new Session({
      ...options,
      input: socket,
      output: socket,
      onEnd: (reason) => this.close(reason),
    })
    this.gone = new Promise((resolve) => socket.once('close', () => resolve()))
    this.timer = setTimeout(() => this.checkInitialized(), options.initializeMs)
    socket.once('close', () => this.leave())
    // The session hears of it as the end of its input or output.
    socket.on('error', () => {})
    this.session.listen()
  }

  /**
   * Take no more requests, answer those that were taken, and close. With `now` what the peer has not taken is dropped.
   */
  close(ending: Ending, now = false): void {
    if (this.ending === undefined) {
      this.ending = ending
      this.session.finish()
      void this.session.drained().then(() => this.hangUp())
    }
    if (now) {
      this.session.loseOutput()
      this.socket.destroy()
    }
  }

  /** Another list of tokens is in force: go on under this access, or end. */
  renewAccess(access: Access | undefined): void {
    if (access === undefined) this.close('token_withdrawn')
    else this.session.access = access
  }

  /**
   * How long its peer has kept us waiting, in milliseconds: with answers that it does not take, or a message that it does
   * not finish. 0 when it does not.
   */
  stalledFor(now: number): number {
    const { progress, heldForPeer } = this.session
    if (heldForPeer === 0 || progress !== this.seen.progress) {
      this.seen.progress = progress
      this.seen.at = now
    }
    return now - this.seen.at
  }

  /** How long it has asked nothing and waited for nothing, in milliseconds. */
  idleFor(now: number): number {
    const { requests, underWay, heldForPeer } = this.session
    if (requests !== this.seen.requests || underWay > 0 || heldForPeer > 0) {
      this.seen.requests = requests
      this.seen.usedAt = now
    }
    return now - this.seen.usedAt
  }

  private checkInitialized(): void {
    if (this.session.isInitialized || this.ending !== undefined) return
    this.session.turnAway(
      'not_initialized',
      `Nothing was initialized within ${this.options.initializeMs} ms; connect again and send initialize at once.`,
    )
    this.close('initialize_timeout')
  }

  /** All is answered: end our side, and give the peer a moment to end its own. */
  private hangUp(): void {
    this.socket.end()
    // What it still sends is read and dropped: closing on unread bytes would make the peer's side lose our answer.
    this.socket.resume()
    setTimeout(() => this.socket.destroy(), LINGER_MS).unref()
  }

  private leave(): void {
    clearTimeout(this.timer)
    this.session.loseOutput()
    this.session.stop()
    const ending = this.ending ?? 'output_gone'
    const { access, client, requests } = this.session
    // A probe every few seconds would drown the rest.
    const level = client?.name === PROBE_NAME ? 'debug' : 'info'
    this.options.log[level](
      {
        reason: ending,
        client: client?.name,
        client_version: client?.version,
        token: access?.token ?? undefined,
        requests,
        ms: Math.round(performance.now() - this.opened),
      },
      'connection closed',
    )
    this.options.onGone(this, ending)
  }
}
