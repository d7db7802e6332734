import { resolve } from 'node:path'
import { openStores } from '@mnem/core'
import { Lifetime } from '../lifetime.ts'
import { createLog } from '../log.ts'
import type { LogLevel } from '../log-level.ts'
import { LogSink } from '../log-sink.ts'
import { Health } from '../ops/health.ts'
import { Session } from '../session/session.ts'
import { takeStdio } from '../stdio.ts'
import { VERSION } from '../version.ts'
import { orComplain, watchForBugs } from './ending.ts'

export interface StdioOptions {
  store: string
  logLevel: LogLevel
  /** Process to end with. */
  parent: number
}

/** Serve one client over standard input and output. Ends the process when that is over. */
export async function runStdio({ store, logLevel, parent }: StdioOptions): Promise<void> {
  const sink = new LogSink(2)
  const log = createLog(logLevel, sink)
  const { input, output, isOutputGone } = takeStdio(sink)
  const dir = resolve(store)
  const stores = await openStores(dir).catch((error: unknown) => orComplain(error))
  if (stores === undefined) return process.exit()
  const health = new Health(stores)
  const session = new Session({
    stores,
    input,
    output,
    log,
    version: VERSION,
    readiness: () => health.readiness(),
    onEnd: (reason) => lifetime.end(reason),
  })
  const lifetime = new Lifetime({
    parent,
    isOutputGone,
    finish: async (alone) => {
      session.stop()
      if (alone) session.loseOutput()
      await session.drained()
      await stores.close()
    },
    leave: (code, reason, drained) => {
      log.info({ reason, drained, code }, 'stopped')
      sink.flush()
      process.exit(code)
    },
  })
  watchForBugs(log, () => lifetime.end('failure'))
  log.info({ version: VERSION, node: process.versions.node, store: dir }, 'started')
  lifetime.watch()
  session.listen()
}
