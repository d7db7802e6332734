import { fstatSync, writeSync } from 'node:fs'

/** Bytes of log lines kept while nobody reads them. */
const KEPT = 1024 * 1024
const RETRY_MS = 50

/**
 * Where log lines go: file descriptor 2, written at once, so that last words are not lost. A pipe that nobody reads must
 * stop neither the server nor its memory from being bounded: lines wait, up to a megabyte, then are dropped and counted.
 */
export class LogSink {
  private readonly fd: number
  private waiting: Buffer[] = []
  private waitingBytes = 0
  private dropped = 0
  private timer: NodeJS.Timeout | undefined
  private gone = false

  constructor(fd: number) {
    this.fd = fd
    // Node makes a pipe non-blocking when it wraps it; only then does a full one say so instead of blocking us.
    if (fd === 2 && isPipe(fd)) process.stderr.on('error', () => {})
  }

  /** Take one or more whole lines. */
  write(lines: string): void {
    if (this.gone) return
    const bytes = Buffer.from(lines)
    if (this.waitingBytes + bytes.length > KEPT) {
      this.dropped++
      return
    }
    this.waiting.push(bytes)
    this.waitingBytes += bytes.length
    this.flush()
  }

  /** Write what can be written now. */
  flush(): void {
    try {
      for (let [bytes] = this.waiting; bytes !== undefined; [bytes] = this.waiting) {
        const written = writeSync(this.fd, bytes)
        this.waitingBytes -= written
        if (written < bytes.length) this.waiting[0] = bytes.subarray(written)
        else this.waiting.shift()
        if (this.waiting.length === 0) this.tellDropped()
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EAGAIN') this.retryLater()
      else this.giveUp()
    }
  }

  private tellDropped(): void {
    if (this.dropped === 0) return
    const line = {
      level: 'warn',
      time: new Date().toISOString(),
      dropped: this.dropped,
      msg: 'log lines were dropped',
    }
    this.dropped = 0
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
    this.waiting.push(bytes)
    this.waitingBytes += bytes.length
  }

  private retryLater(): void {
    if (this.timer !== undefined) return
    this.timer = setTimeout(() => {
      this.timer = undefined
      this.flush()
    }, RETRY_MS)
    this.timer.unref()
  }

  /** Nobody will ever read this. */
  private giveUp(): void {
    this.gone = true
    this.waiting = []
    this.waitingBytes = 0
  }
}

/** Whether a file descriptor is a pipe or a socket: something whose other end can be slow or gone. */
export function isPipe(fd: number): boolean {
  try {
    const stat = fstatSync(fd)
    return stat.isFIFO() || stat.isSocket()
  } catch {
    return false
  }
}
