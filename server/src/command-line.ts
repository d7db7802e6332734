import { parseArgs } from 'node:util'
import { DEFAULT_LOG_LEVEL, isLogLevel, LOG_LEVELS, type LogLevel } from './log.ts'

/** What the command line asks for. */
export type Command =
  | { name: 'help' }
  | { name: 'version' }
  | { name: 'stdio'; store: string; logLevel: LogLevel; parentPid: number | undefined }

/** A command line that can't be followed; `message` is one sentence that says what to do. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const HELP = `mnem-sidecar keeps the memories of AI agents as version-controlled stores.

Usage
  mnem-sidecar stdio --store DIR [--log-level LEVEL] [--parent-pid PID]
  mnem-sidecar --help | --version

Commands
  stdio              Serve one client: JSON-RPC frames on standard input and output, logs on standard
                     error. Ends in order on end of input, the notification "exit", SIGTERM, SIGINT, or
                     when its parent dies.

Options
  --store DIR        Directory that holds the memories; made if it does not exist.
  --log-level LEVEL  ${LOG_LEVELS.join(', ')} (default ${DEFAULT_LOG_LEVEL}; also from MNEM_LOG).
                     Logs are JSON lines and never hold what is remembered.
  --parent-pid PID   End when the parent is another process than this one (default: the parent at start).
  --help             Show this text.
  --version          Show the version.

Exit status
  0  ended in order
  1  ended by a fault of its own, or could not answer everything within 10 seconds
  2  wrong command line
  3  the store directory can't be used
  4  this Node is too old, or its SQLite is
  5  the client sent what is no frame

Example
  mnem-sidecar stdio --store ./.mnem
`

const OPTIONS = {
  store: { type: 'string' },
  'log-level': { type: 'string' },
  'parent-pid': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'V' },
} as const

/** Read the command line. Throws `UsageError`. */
export function readCommandLine(argv: string[], env: NodeJS.ProcessEnv): Command {
  const { values, positionals } = parse(argv)
  if (values.help === true) return { name: 'help' }
  if (values.version === true) return { name: 'version' }
  const [command, extra] = positionals
  if (command === undefined) throw new UsageError('Say what to do: mnem-sidecar stdio --store DIR.')
  if (command !== 'stdio')
    throw new UsageError(`There is no command ${JSON.stringify(command)}; the one there is: stdio.`)
  if (extra !== undefined)
    throw new UsageError(`${JSON.stringify(extra)} is one argument too many; leave it out.`)
  if (values.store === undefined || values.store === '') {
    throw new UsageError('Say where the memories are kept: --store DIR.')
  }
  return {
    name: 'stdio',
    store: values.store,
    logLevel: readLogLevel(values['log-level'], env),
    parentPid: readPid(values['parent-pid']),
  }
}

function parse(argv: string[]) {
  try {
    return parseArgs({ args: argv, options: OPTIONS, allowPositionals: true, strict: true })
  } catch (error) {
    const { message } = error as Error
    // Node's own words end in a hint about positional arguments that does not help here.
    throw new UsageError(`${message.split(/\. |\n/, 1)[0]?.replace(/\.$/, '')}.`)
  }
}

function readLogLevel(option: string | undefined, env: NodeJS.ProcessEnv): LogLevel {
  const [level, source] = option !== undefined ? [option, '--log-level'] : [env.MNEM_LOG, 'MNEM_LOG']
  if (level === undefined || (level === '' && source === 'MNEM_LOG')) return DEFAULT_LOG_LEVEL
  if (isLogLevel(level)) return level
  throw new UsageError(`${source} is ${JSON.stringify(level)}; give one of ${LOG_LEVELS.join(', ')}.`)
}

function readPid(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw new UsageError(`--parent-pid is ${JSON.stringify(text)}; give the number of a process.`)
}
