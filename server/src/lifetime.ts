import type { EndReason } from './session/session.ts'

/** Milliseconds that answering and closing may take when the server ends, where nobody says otherwise. */
const DRAIN_MS = 10_000
/** The same when nobody is left to read the answers. */
const ALONE_MS = 3_000
/** How often the parent and the reader of our output are looked at. */
const WATCH_MS = 1_000

/** Why the server ends. */
export type StopReason = EndReason | 'parent_gone' | 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'failure'

/** Exit codes; `--help` explains them. */
export const EXIT = { ok: 0, failure: 1, usage: 2, store: 3, framing: 5, listen: 6 } as const

export interface LifetimeOptions {
  /** Take no more, answer what was taken, close the store. With `alone` nobody reads the answers. */
  finish: (alone: boolean) => Promise<void>
  /** Leave: the last thing that happens. */
  leave: (code: number, reason: StopReason, drained: boolean) => void
  /** Process id of the parent to outlive by no more than a moment; without one, nobody's end is ours. */
  parent?: number
  isOutputGone?: () => boolean
  /** Milliseconds that answering and closing may take. */
  drainMs?: number
  /** What SIGHUP asks for; without it, to end. */
  onHangup?: () => void
}

/** Sees to it that the server ends when it should, once, within a bound, and in order. */
export class Lifetime {
  private readonly options: LifetimeOptions
  private ending = false

  constructor(options: LifetimeOptions) {
    this.options = options
  }

  /** Begin to watch for signals, for the parent's death, and for an output that nobody reads. */
  watch(): void {
    const { onHangup, parent } = this.options
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => this.signal(signal))
    process.on('SIGHUP', () => (onHangup === undefined ? this.signal('SIGHUP') : onHangup()))
    if (parent === undefined) return
    // Input may never end although the parent is dead: a child that it forked holds the other end of our pipe.
    setInterval(() => this.look(), WATCH_MS).unref()
    this.look()
  }

  /** End. Only the first reason counts. */
  end(reason: StopReason): void {
    if (this.ending) return
    this.ending = true
    const alone = reason === 'parent_gone' || reason === 'output_gone'
    let left = false
    const leave = (drained: boolean) => {
      if (left) return
      left = true
      this.options.leave(drained ? codeOf(reason) : EXIT.failure, reason, drained)
    }
    setTimeout(() => leave(false), alone ? ALONE_MS : (this.options.drainMs ?? DRAIN_MS))
    this.options.finish(alone).then(
      () => leave(true),
      () => leave(false),
    )
  }

  private look(): void {
    if (process.ppid !== this.options.parent) this.end('parent_gone')
    else if (this.options.isOutputGone?.() === true) this.end('output_gone')
  }

  private signal(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): void {
    if (this.ending) this.options.leave(EXIT.failure, signal, false)
    else this.end(signal)
  }
}

function codeOf(reason: StopReason): number {
  if (reason === 'framing') return EXIT.framing
  return reason === 'failure' ? EXIT.failure : EXIT.ok
}
