import { parseArgs } from 'node:util'
import type { TokenOptions } from './commands/token.ts'
import { flagOf, OPTION_NAMES, OPTIONS, variableOf } from './config/options.ts'
import type { Flags } from './config/read.ts'
import { duration, type Kind, ValueError } from './config/values.ts'
import { DEFAULT_LOG_LEVEL, isLogLevel, LOG_LEVELS, type LogLevel } from './log-level.ts'
import { UsageError } from './usage.ts'

/** What the command line asks for. */
export type Command =
  | { name: 'help'; text: string }
  | { name: 'version' }
  | { name: 'stdio'; store: string; logLevel: LogLevel; parentPid: number | undefined }
  | { name: 'serve'; flags: Flags }
  | { name: 'health'; endpoint: string | undefined; timeoutMs: number }
  | { name: 'token'; action: string; options: TokenOptions }

export const HELP = `mnem-sidecar keeps the memories of AI agents as version-controlled stores.

Usage
  mnem-sidecar stdio --store DIR [--log-level LEVEL] [--parent-pid PID]
  mnem-sidecar serve --store DIR --listen ADDRESS [--listen ADDRESS …] [OPTIONS]
  mnem-sidecar health [--endpoint ADDRESS] [--timeout TIME]
  mnem-sidecar token new --file FILE --name NAME --memory RULE … --verb VERB … [--author NAME]
  mnem-sidecar token list --file FILE
  mnem-sidecar token revoke --file FILE --name NAME
  mnem-sidecar --help | --version
  mnem-sidecar serve --help

Commands
  stdio              Serve one client: JSON-RPC frames on standard input and output, logs on standard
                     error. Ends in order on end of input, the notification "exit", SIGTERM, SIGINT, or
                     when its parent dies.
  serve              Serve many clients over Unix sockets, TCP or TLS, until SIGTERM or SIGINT.
  health             Ask a server whether it is well; exit status 0 or 1. The token, where one is needed,
                     comes from MNEM_TOKEN or MNEM_TOKEN_FILE.
  token              Make, list and revoke the tokens that serve asks for.

Options
  --store DIR        Directory that holds the memories; made if it does not exist.
  --log-level LEVEL  ${LOG_LEVELS.join(', ')} (default ${DEFAULT_LOG_LEVEL}; stdio: also from MNEM_LOG).
                     Logs are JSON lines and never hold what is remembered.
  --parent-pid PID   End when the parent is another process than this one (default: the parent at start).
  --endpoint ADDRESS unix:PATH, tcp:HOST:PORT, tls:HOST:PORT, or http://HOST:PORT for /readyz there
                     (default: MNEM_ENDPOINT, else the first of MNEM_SERVER_LISTEN).
  --timeout TIME     How long the answer may take (default 3s).
  --file FILE        The token file; it keeps only hashes.
  --memory RULE      A memory's name, or a prefix with * at its end; may be given several times.
  --verb VERB        read, write or admin; may be given several times. None stands for another.
  --author NAME      Every commit made with the token is by NAME, whatever the client says.
  --help             Show this text.
  --version          Show the version.

Exit status
  0  ended in order
  1  ended by a fault of its own, could not answer everything in time, or is not healthy
  2  wrong command line or configuration
  3  the store directory can't be used
  4  this Node is too old, or its SQLite is
  5  the client sent what is no frame (stdio)
  6  an address can't be listened on

Example
  mnem-sidecar stdio --store ./.mnem
  mnem-sidecar serve --store ./.mnem --listen unix:/tmp/mnem.sock
`

/** The help of `serve`, made from its options. */
export function serveHelp(): string {
  const options = OPTION_NAMES.map((name) => {
    const { kind, byDefault, doc } = OPTIONS[name]
    const { placeholder, show } = kind as Kind<unknown>
    const shown = byDefault === undefined ? '' : ` (default ${show(byDefault)})`
    return `  --${flagOf(name)} ${placeholder}\n${wrap(`${doc}${shown}`)}\n`
  })
  return `Serve many clients over sockets.

Usage
  mnem-sidecar serve --store DIR --listen ADDRESS [--listen ADDRESS …] [OPTIONS]

Each option may come from the command line (--drain 5s), from the environment (${variableOf('drain')}=5s) or
from a file (drain = "5s"). The command line comes before the environment, that before the file, that
before the defaults.

Options
${options.join('')}  --config FILE
      A file with options, TOML or (named *.json) JSON; also from ${variableOf('config')}.
  --print-config
      Show the options in force and where each was taken from, and end.

Signals
  SIGTERM, SIGINT    Take no more, answer what was taken, close the store, end; a second one ends at once.
  SIGHUP             Read tokens and certificates again (done within a second or two by itself, too).
`
}

const WIDTH = 96

/** Lines of at most so many characters, indented. */
function wrap(text: string): string {
  const lines: string[] = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) as string
    if (line !== '' && line.length + 1 + word.length > WIDTH) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.map((line) => `      ${line}`).join('\n')
}

const HELP_FLAG = { help: { type: 'boolean', short: 'h' } } as const
const TEXT = { type: 'string' } as const
const TEXTS = { type: 'string', multiple: true } as const
const COMMANDS = ['stdio', 'serve', 'health', 'token'] as const
const TOKEN_ACTIONS = ['new', 'list', 'revoke']

/** Read the command line. Throws `UsageError`. */
export function readCommandLine(argv: string[], env: NodeJS.ProcessEnv): Command {
  const [name, ...rest] = argv
  switch (name) {
    case 'stdio':
      return readStdio(rest, env)
    case 'serve':
      return readServe(rest)
    case 'health':
      return readHealth(rest)
    case 'token':
      return readToken(rest)
  }
  if (name !== undefined && !name.startsWith('-'))
    throw new UsageError(`There is no command ${JSON.stringify(name)}; there are ${COMMANDS.join(', ')}.`)
  const { help, version } = parse(argv, { ...HELP_FLAG, version: { type: 'boolean', short: 'V' } })
  if (help === true) return { name: 'help', text: HELP }
  if (version === true) return { name: 'version' }
  throw new UsageError('Say what to do: mnem-sidecar stdio --store DIR, or mnem-sidecar serve.')
}

function readStdio(argv: string[], env: NodeJS.ProcessEnv): Command {
  const options = { ...HELP_FLAG, store: TEXT, 'log-level': TEXT, 'parent-pid': TEXT }
  const values = parse(argv, options)
  if (values.help === true) return { name: 'help', text: HELP }
  const store = given(values.store, 'Say where the memories are kept: --store DIR.')
  return {
    name: 'stdio',
    store,
    logLevel: readLogLevel(values['log-level'] as string | undefined, env),
    parentPid: readPid(values['parent-pid'] as string | undefined),
  }
}

function readServe(argv: string[]): Command {
  const options = Object.fromEntries(
    OPTION_NAMES.map((name) => [
      flagOf(name),
      (OPTIONS[name].kind as Kind<unknown>).multiple === true ? TEXTS : TEXT,
    ]),
  )
  const flags = parse(argv, {
    ...HELP_FLAG,
    ...options,
    config: TEXT,
    'print-config': { type: 'boolean' },
  })
  return flags.help === true ? { name: 'help', text: serveHelp() } : { name: 'serve', flags: flags as Flags }
}

function readHealth(argv: string[]): Command {
  const { help, endpoint, timeout = '3s' } = parse(argv, { ...HELP_FLAG, endpoint: TEXT, timeout: TEXT })
  if (help === true) return { name: 'help', text: HELP }
  try {
    return {
      name: 'health',
      endpoint: endpoint as string | undefined,
      timeoutMs: duration.read(timeout as string),
    }
  } catch (error) {
    if (!(error instanceof ValueError)) throw error
    throw new UsageError(`--timeout is ${JSON.stringify(timeout)}, which ${error.message}.`)
  }
}

function readToken(argv: string[]): Command {
  const [action, ...rest] = argv
  const options = { ...HELP_FLAG, file: TEXT, name: TEXT, memory: TEXTS, verb: TEXTS, author: TEXT }
  const isAction = action !== undefined && !action.startsWith('-')
  const { help, ...values } = parse(isAction ? rest : argv, options)
  if (help === true) return { name: 'help', text: HELP }
  if (action === undefined || !TOKEN_ACTIONS.includes(action))
    throw new UsageError(`Say what to do with tokens: ${TOKEN_ACTIONS.join(', ')}.`)
  const file = given(values.file, 'Say which token file: --file FILE.')
  return { name: 'token', action, options: { ...values, file } as TokenOptions }
}

function given(value: unknown, otherwise: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw new UsageError(otherwise)
}

function parse(args: string[], options: NonNullable<Parameters<typeof parseArgs>[0]>['options']) {
  let parsed: ReturnType<typeof parseArgs>
  try {
    parsed = parseArgs({ args, options: options ?? {}, allowPositionals: true, strict: true })
  } catch (error) {
    const { message } = error as Error
    // Node's own words end in a hint about positional arguments that does not help here.
    throw new UsageError(`${message.split(/\. |\n/, 1)[0]?.replace(/\.$/, '')}.`)
  }
  const [extra] = parsed.positionals
  if (extra !== undefined)
    throw new UsageError(`${JSON.stringify(extra)} is one argument too many; leave it out.`)
  return parsed.values
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
