import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { SocketMessageReader, SocketMessageWriter } from 'vscode-jsonrpc/node'
import { variableOf } from '../config/options.ts'
import { type Address, AddressError, readAddress } from '../listen/address.ts'
import { PROBE_NAME } from '../ops/probe.ts'
import { createMessageConnection, ResponseError } from '../session/rpc.ts'
import { UsageError } from '../usage.ts'
import { VERSION } from '../version.ts'
import { complain, orComplain } from './ending.ts'

export interface HealthOptions {
  endpoint: string | undefined
  timeoutMs: number
}

const UNHEALTHY = 1

/**
 * Ask a server whether it is well, for probes that run a command: exit status 0 or 1, and a line that says why. Makes no
 * commit and opens no memory. Its endpoint is `--endpoint`, else MNEM_ENDPOINT, else where a server with this
 * environment listens.
 */
export async function runHealth(
  { endpoint, timeoutMs }: HealthOptions,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  let probe: (signal: AbortSignal) => Promise<string | undefined>
  try {
    probe = probeFor(endpoint, env)
  } catch (error) {
    return orComplain(error)
  }
  const signal = AbortSignal.timeout(timeoutMs)
  const late = new Promise<string>((resolve) =>
    signal.addEventListener('abort', () => resolve(`it did not answer within ${timeoutMs} ms`)),
  )
  const problem = await Promise.race([late, probe(signal).catch((error: unknown) => describe(error))])
  if (problem === undefined) process.stdout.write('healthy\n')
  else complain(`unhealthy: ${problem}`, UNHEALTHY)
  // A peer that keeps the connection open is not waited for.
  process.exit()
}

function probeFor(given: string | undefined, env: NodeJS.ProcessEnv) {
  const own = env[variableOf('listen')]?.split(',', 1)[0]?.trim()
  const endpoint = given ?? (env.MNEM_ENDPOINT || own)
  if (endpoint === undefined || endpoint === '')
    throw new UsageError(
      'Say whom to ask: --endpoint unix:PATH, tcp:HOST:PORT, tls:HOST:PORT or http://HOST:PORT.',
    )
  if (endpoint.startsWith('http://')) return () => askHttp(endpoint)
  const address = readEndpoint(endpoint)
  const token = readToken(env)
  // Of itself the server's name need not be in its certificate.
  const isOwn = given === undefined && !env.MNEM_ENDPOINT
  return (signal: AbortSignal) => askRpc(open(address, env, isOwn), token, signal)
}

function readEndpoint(endpoint: string): Address {
  try {
    const address = readAddress(endpoint)
    if (address.transport === 'unix') return address
    // What listens on every network is asked on this machine's own.
    const own: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
    return { ...address, host: own[address.host] ?? address.host }
  } catch (error) {
    if (!(error instanceof AddressError)) throw error
    throw new UsageError(`The endpoint ${JSON.stringify(endpoint)} ${error.message}.`)
  }
}

function readToken(env: NodeJS.ProcessEnv): string | undefined {
  if (env.MNEM_TOKEN) return env.MNEM_TOKEN
  const file = env.MNEM_TOKEN_FILE
  if (!file) return undefined
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new UsageError(
      `MNEM_TOKEN_FILE names ${file}, which can't be read (${(error as NodeJS.ErrnoException).code}).`,
    )
  }
}

function open(address: Address, env: NodeJS.ProcessEnv, isOwn: boolean): Socket {
  if (address.transport === 'unix') return connectPlain(address.path)
  const { host, port } = address
  if (address.transport === 'tcp') return connectPlain({ host, port })
  const pem = (name: string) => (env[name] ? readFileSync(env[name]) : undefined)
  return connectTls({
    host,
    port,
    rejectUnauthorized: !isOwn,
    ca: pem('MNEM_TLS_CA'),
    cert: pem('MNEM_TLS_CERT'),
    key: pem('MNEM_TLS_KEY'),
  })
}

/** What is wrong, or undefined. */
async function askRpc(
  socket: Socket,
  token: string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const failed = new Promise<never>((_, reject) => {
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('it closed the connection')))
    signal.addEventListener('abort', () => socket.destroy())
  })
  const connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket))
  connection.listen()
  const hello = { protocol: 1, client: { name: PROBE_NAME, version: VERSION } }
  const ask = async () => {
    await connection.sendRequest('initialize', token === undefined ? hello : { ...hello, token })
    return connection.sendRequest<{ ready?: boolean; reason?: string }>('ping', {})
  }
  const { ready, reason } = await Promise.race([ask(), failed])
  return ready === false ? reason : undefined
}

function askHttp(endpoint: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    get(new URL('/readyz', endpoint), (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      response.once('end', () => resolve(response.statusCode === 200 ? undefined : body.trim()))
      response.once('error', reject)
    }).once('error', reject)
  })
}

function describe(error: unknown): string {
  if (error instanceof ResponseError) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return `nobody listens there (${code})`
  return message
}
