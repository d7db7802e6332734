import { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { openStores, type Stores } from '@mnem/core'
import { watchLifetime } from './lifetime.ts'
import { createLog, type Log, type LogLevel } from './log.ts'
import { isPipe, LogSink } from './log-sink.ts'
import { Session } from './session.ts'

/** How long the end waits for what was taken, in ms. */
const DRAIN_MS = 10_000

const STDOUT = 1
const STDERR = 2

export interface StdioOptions {
  /** The store directory. */
  store: string
  level: LogLevel
  parentPid?: number | undefined
  version: string
}

/**
 * Serve one client over standard input and output, until the input ends, the client says `exit`, a signal comes, or the
 * parent is gone; then answer what was taken, close the store, and resolve with the exit status.
 *
 * Rejects with a `MnemError` when the store directory can't be opened; nothing was read then.
 */
export async function serveStdio({ store, level, parentPid, version }: StdioOptions): Promise<number> {
  const output = claimStdout()
  const sink = new LogSink(STDERR)
  const log = createLog(level, sink)
  const stores = await openStores(store)
  const ended = Promise.withResolvers<string>()
  const session = new Session({
    stores,
    input: process.stdin,
    output,
    log,
    version,
    onEnd: (reason) => {
      if (reason === 'output_gone') session.loseOutput()
      ended.resolve(reason)
    },
  })
  const unwatch = watchLifetime({
    parentPid,
    end: (reason) => ended.resolve(reason),
    abandon: (status) => process.exit(status),
  })
  log.info({ version, store, node: process.version, sqlite: process.versions.sqlite }, 'started')
  session.listen()
  const reason = await ended.promise
  const drained = await drain(session, stores, log)
  unwatch()
  log.info({ reason, drained }, 'stopped')
  sink.flush()
  return drained ? 0 : 1
}

/** Take nothing more, answer what was taken, close the store; false when that took too long. */
async function drain(session: Session, stores: Stores, log: Log): Promise<boolean> {
  session.stop()
  let timer: NodeJS.Timeout | undefined
  const tooLong = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), DRAIN_MS)
  })
  const answered = session.drained().then(() => stores.close())
  const outcome = await Promise.race([answered, tooLong]).catch((error: unknown) => {
    log.error({ err: error instanceof Error ? error.message : 'unknown' }, 'the store did not close')
    return 'late'
  })
  clearTimeout(timer)
  return outcome !== 'late'
}

/**
 * Standard output carries frames only: give the stream for them, and send whatever else writes to it (a stray
 * `console.log`) to standard error. A pipe is wrapped anew, because Node's own wrapper writes to pipes without giving
 * way: a client that does not read would stop the event loop.
 */
function claimStdout(): Writable {
  const frames = isPipe(STDOUT) ? new Socket({ fd: STDOUT, readable: false, writable: true }) : rawStdout()
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write
  return frames
}

/** A file or terminal, for trials by hand. */
function rawStdout(): Writable {
  const { stdout } = process
  const write = stdout.write.bind(stdout)
  return new Proxy(stdout, {
    get: (target, key) => {
      if (key === 'write') return write
      const member = Reflect.get(target, key)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
