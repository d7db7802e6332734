import { writeSync } from 'node:fs'
import { resolve } from 'node:path'
import { MnemError, openStores } from '@mnem/core'
import manifest from '../package.json' with { type: 'json' }
import { type Command, HELP, readCommandLine, UsageError } from './command-line.ts'
import { EXIT, Lifetime } from './lifetime.ts'
import { createLog, type Log } from './log.ts'
import { LogSink } from './log-sink.ts'
import { Session } from './session.ts'
import { takeStdio } from './stdio.ts'

type StdioCommand = Extract<Command, { name: 'stdio' }>

/** Run the command line. Ends the process when the work is done. */
export async function main(argv: string[]): Promise<void> {
  // Before anything that takes time: a parent that dies meanwhile is not taken for the one that came after it.
  const parent = process.ppid
  let command: Command
  try {
    command = readCommandLine(argv, process.env)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    return complain(`${error.message} See mnem-sidecar --help.`, EXIT.usage)
  }
  if (command.name === 'help') process.stdout.write(HELP)
  else if (command.name === 'version') process.stdout.write(`mnem-sidecar ${manifest.version}\n`)
  else await serve(command, command.parentPid ?? parent)
}

async function serve({ store, logLevel }: StdioCommand, parent: number): Promise<void> {
  const sink = new LogSink(2)
  const log = createLog(logLevel, sink)
  const { input, output, isOutputGone } = takeStdio(sink)
  const dir = resolve(store)
  const stores = await openStores(dir).catch((error: unknown) => {
    if (!(error instanceof MnemError)) throw error
    complain(error.message, EXIT.store)
  })
  if (stores === undefined) return process.exit()
  const session = new Session({
    stores,
    input,
    output,
    log,
    version: manifest.version,
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
  watchForBugs(log, lifetime)
  log.info({ version: manifest.version, node: process.versions.node, store: dir }, 'started')
  lifetime.watch()
  session.listen()
}

/** A bug that no request carries: say it in the log and end in order, rather than go on with who knows what. */
function watchForBugs(log: Log, lifetime: Lifetime): void {
  const report = (error: unknown) => {
    log.fatal({ stack: error instanceof Error ? error.stack : String(error) }, 'a bug; ending')
    lifetime.end('failure')
  }
  process.on('uncaughtException', report)
  process.on('unhandledRejection', report)
}

function complain(sentence: string, code: number): void {
  try {
    writeSync(2, `mnem-sidecar: ${sentence}\n`)
  } catch {
    // Nobody listens; the exit code says it too.
  }
  process.exitCode = code
}
