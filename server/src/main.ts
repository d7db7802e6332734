import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { MnemError } from '@mnem/core'
import packageJson from '../package.json' with { type: 'json' }
import { DEFAULT_LOG_LEVEL, isLogLevel, LOG_LEVELS, type LogLevel } from './log.ts'
import { serveStdio } from './stdio.ts'

/** Exit statuses, as `--help` tells them. */
const EXIT = { ok: 0, failed: 1, usage: 2, store: 3 } as const

const HELP = `mnem-sidecar ${packageJson.version}: keeps the memories of AI agents as version-controlled stores

Usage
  mnem-sidecar stdio --store DIR [--log-level LEVEL]

Serves one client over standard input and output (docs/protocol.md) until the input ends. The Python client
mnem-autogen starts it by itself; by hand it is of use to see what it says.

Options
  --store DIR         directory of the memories; made when it is missing
  --log-level LEVEL   ${LOG_LEVELS.join(', ')} (default: MNEM_LOG, else ${DEFAULT_LOG_LEVEL});
                      logs are JSON lines on standard error and hold no memory content
  --parent-pid PID    end when this process is no longer the parent (default: the parent at the start)
  --help, --version

Exit status
  0  ended as asked          2  wrong use of this command        4  this Node is too old
  1  failed, see the log     3  the store can't be opened        128+N  a second signal N
`

const OPTIONS = {
  store: { type: 'string' },
  'log-level': { type: 'string' },
  'parent-pid': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const

/** A mistake in how the command was called: one sentence for the user. */
class UsageError extends Error {}

/** Run the command line; ends the process with its status. */
export async function main(args: string[]): Promise<void> {
  process.exit(await run(args))
}

async function run(args: string[]): Promise<number> {
  try {
    const { values, positionals } = parse(args)
    if (values.help) return print(HELP)
    if (values.version) return print(`${packageJson.version}\n`)
    const [command, ...rest] = positionals
    if (command === undefined) throw new UsageError('names no command; the one there is so far is "stdio"')
    if (command !== 'stdio')
      throw new UsageError(`does not know the command "${command}"; the one there is so far is "stdio"`)
    if (rest.length > 0) throw new UsageError(`stdio takes no argument "${rest[0]}"`)
    if (values.store === undefined || values.store === '')
      throw new UsageError('stdio needs --store DIR, the directory of the memories')
    return await serveStdio({
      store: resolve(values.store),
      level: logLevel(values['log-level']),
      parentPid: parentPid(values['parent-pid']),
      version: packageJson.version,
    })
  } catch (error) {
    if (error instanceof UsageError) return complain(`${error.message}. See mnem-sidecar --help.`, EXIT.usage)
    if (error instanceof MnemError) return complain(error.message, EXIT.store)
    return complain(error instanceof Error ? (error.stack ?? error.message) : String(error), EXIT.failed)
  }
}

function parse(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true, strict: true })
  } catch (error) {
    const first = (error as Error).message.split('. ')[0] ?? ''
    throw new UsageError(`was called wrongly: ${first.charAt(0).toLowerCase()}${first.slice(1)}`)
  }
}

function logLevel(given: string | undefined): LogLevel {
  const [level, where] = given === undefined ? [process.env.MNEM_LOG, 'MNEM_LOG'] : [given, '--log-level']
  if (level === undefined || level === '') return DEFAULT_LOG_LEVEL
  if (!isLogLevel(level))
    throw new UsageError(`${where} is "${level}"; it takes one of ${LOG_LEVELS.join(', ')}`)
  return level
}

function parentPid(given: string | undefined): number | undefined {
  if (given === undefined) return undefined
  const pid = Number(given)
  if (!/^\d+$/.test(given) || !Number.isSafeInteger(pid) || pid === 0)
    throw new UsageError(`--parent-pid is "${given}"; it takes a process id`)
  return pid
}

function print(text: string): number {
  process.stdout.write(text)
  return EXIT.ok
}

function complain(sentence: string, status: number): number {
  process.stderr.write(`mnem-sidecar: ${sentence}\n`)
  return status
}
