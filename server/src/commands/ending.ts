import { writeSync } from 'node:fs'
import { MnemError } from '@mnem/core'
import { EXIT } from '../lifetime.ts'
import { ListenError } from '../listen/listen-error.ts'
import type { Log } from '../log.ts'
import { UsageError } from '../usage.ts'

/** A bug that no request carries: say it in the log and end in order, rather than go on with who knows what. */
export function watchForBugs(log: Log, end: () => void): void {
  const report = (error: unknown) => {
    log.fatal({ stack: error instanceof Error ? error.stack : String(error) }, 'a bug; ending')
    end()
  }
  process.on('uncaughtException', report)
  process.on('unhandledRejection', report)
}

/** Say on standard error what can't be done, and have the process end with this code. */
export function complain(sentence: string, code: number): void {
  try {
    writeSync(2, `mnem-sidecar: ${sentence}\n`)
  } catch {
    // Nobody listens; the exit code says it too.
  }
  process.exitCode = code
}

/** Complain of an error that says what the user can do; throw any other. */
export function orComplain(error: unknown): undefined {
  if (error instanceof UsageError) complain(`${error.message} See mnem-sidecar --help.`, EXIT.usage)
  else if (error instanceof ListenError) complain(error.message, EXIT.listen)
  else if (error instanceof MnemError) complain(error.message, EXIT.store)
  else throw error
  return undefined
}
