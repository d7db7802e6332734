import { DEFAULT_LOG_LEVEL } from '../log-level.ts'
import {
  addresses,
  bytes,
  count,
  duration,
  hostPort,
  type Kind,
  logLevel,
  mode,
  path,
  within,
} from './values.ts'

/** One option of `serve`: the same name on the command line, in the environment and in the file, each in its spelling. */
export interface Option<T> {
  readonly kind: Kind<T>
  /** Undefined: must be given, or is off, as the text says. */
  readonly byDefault: T | undefined
  readonly doc: string
}

function option<T>(kind: Kind<T>, byDefault: T, doc: string): Option<T> {
  return { kind, byDefault, doc }
}

function optional<T>(kind: Kind<T>, doc: string): Option<T | undefined> {
  return { kind: kind as Kind<T | undefined>, byDefault: undefined, doc }
}

const KiB = 1024
const MiB = 1024 * KiB
const SECOND = 1000
const HOUR = 3600 * SECOND

/** Everything that `serve` can be told, in the order of the help. Keys are the names in a configuration file. */
export const OPTIONS = {
  store: optional(path, 'Directory that holds the memories; made if it does not exist. Must be given.'),
  listen: optional(
    addresses,
    'Where to listen: unix:PATH, tcp:HOST:PORT or tls:HOST:PORT; may be given several times (in the environment with commas between). Must be given.',
  ),
  socket_mode: option(mode, 0o600, 'File mode of Unix sockets; 0660 lets the group in.'),
  token_file: optional(
    path,
    'Tokens that connections must bring, made by "mnem-sidecar token new"; without one every connection may do everything. Needed to listen beyond loopback.',
  ),
  tls_cert: optional(path, 'Certificate chain in PEM, for tls: addresses.'),
  tls_key: optional(path, 'Its private key in PEM.'),
  tls_ca: optional(path, 'Certificates in PEM; with it a client must show one that these have signed.'),
  backup_dir: optional(
    path,
    'Directory below which clients with the verb admin on every memory may make backups; without one they may not.',
  ),
  http: optional(hostPort, 'Where to answer /healthz, /readyz and /metrics over HTTP.'),
  drain: option(
    within(duration, SECOND, HOUR),
    10 * SECOND,
    'How long answering what was taken may last when the server is stopped.',
  ),
  log_level: option(logLevel, DEFAULT_LOG_LEVEL, 'trace, debug, info, warn, error, fatal or silent.'),
  slow_request: option(duration, SECOND, 'A request that takes longer gets a line in the log.'),
  max_connections: option(count, 1000, 'Connections at once; one more is refused.'),
  max_in_flight: option(
    within(count, 1, 100_000),
    1000,
    'Requests under way on one connection; more are not read before some are answered.',
  ),
  max_connection_bytes: option(
    within(bytes, 64 * KiB, 1024 * MiB),
    64 * MiB,
    'Bytes of requests under way, or of answers not taken, of one connection; then no more is read from it.',
  ),
  max_buffered_bytes: option(
    within(bytes, MiB, 64 * 1024 * MiB),
    256 * MiB,
    'The same of all connections together; past it those that take no answers are ended, the largest first.',
  ),
  frame_bytes: option(
    within(bytes, MiB, 256 * MiB),
    32 * MiB,
    'Longest message, either way. Clients are told.',
  ),
  initialize_timeout: option(
    within(duration, 100, HOUR),
    10 * SECOND,
    'How long a new connection may take until it is initialized.',
  ),
  idle_timeout: option(
    duration,
    HOUR,
    'A connection without a request for so long is ended; 0 for never. Clients connect again by themselves.',
  ),
  stall_timeout: option(
    within(duration, SECOND, 24 * HOUR),
    30 * SECOND,
    'A connection whose peer takes none of its answers, or sends nothing more of a message, for so long is ended.',
  ),
  busy_timeout: option(
    within(duration, 0, HOUR),
    10 * SECOND,
    'How long a write waits for another process on the same store before it is "busy".',
  ),
} as const satisfies Record<string, { kind: unknown; byDefault: unknown; doc: string }>

/** The options in force. */
export type Config = {
  readonly [Name in keyof typeof OPTIONS]: (typeof OPTIONS)[Name] extends Option<infer T> ? T : never
}

export type OptionName = keyof Config

export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[]

/** `--socket-mode` of `socket_mode`. */
export function flagOf(name: string): string {
  return name.replaceAll('_', '-')
}

/** `MNEM_SERVER_SOCKET_MODE` of `socket_mode`. */
export function variableOf(name: string): string {
  return `${VARIABLE_PREFIX}${name.toUpperCase()}`
}

export const VARIABLE_PREFIX = 'MNEM_SERVER_'
