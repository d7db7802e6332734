/**
 * What a sidecar that serves sockets costs: a round trip over a Unix socket and over TCP beside a bare echo on the same
 * transport, from the start to readiness beside `node -e 0`, and the memory of the process idle and with 200
 * connections. Rounds of both peers take turns in one run; figures are medians.
 *
 * node test/bench/sockets.ts [ENTRY]    ENTRY: another entry file of the sidecar, such as a bundle
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROUNDS = 9
const TRIPS = 2000
const CONNECTIONS = 200

const entry = process.argv[2] ?? fileURLToPath(new URL('../../server/bin/mnem-sidecar.mjs', import.meta.url))
const dir = mkdtempSync(join(tmpdir(), 'mnem-bench-'))
const children: ChildProcess[] = []

const ECHO = `
const server = require('node:net').createServer({ noDelay: true }, (socket) => socket.pipe(socket))
server.listen(process.argv[1] === 'tcp' ? { host: '127.0.0.1', port: 0 } : process.argv[1], () =>
  console.error(JSON.stringify({ msg: 'ready', listen: ['tcp:127.0.0.1:' + server.address().port] })))
`

function frame(message: object): Buffer {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message })
  return Buffer.from(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}

const HELLO = frame({
  id: 0,
  method: 'initialize',
  params: { protocol: 1, client: { name: 'bench', version: '0' } },
})
const PING = frame({ id: 1, method: 'ping', params: {} })

/** Start a program and wait for its line that says it is ready; gives the line and the milliseconds. */
async function start(args: string[]): Promise<{ child: ChildProcess; listen: string[]; ms: number }> {
  const began = performance.now()
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  children.push(child)
  let text = ''
  for await (const chunk of child.stderr as AsyncIterable<Buffer>) {
    text += chunk
    const line = text.split('\n').find((one) => one.includes('"ready"'))
    if (line !== undefined) return { child, listen: JSON.parse(line).listen, ms: performance.now() - began }
  }
  throw new Error(text)
}

/** Connect; with `hello`, as a client of the sidecar. */
async function open(target: string | number, hello: boolean): Promise<Socket> {
  const socket = typeof target === 'string' ? connect(target) : connect(target, '127.0.0.1').setNoDelay()
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  if (hello) await trip(socket, HELLO)
  return socket
}

/** One message there and one back. */
function trip(socket: Socket, message: Buffer): Promise<void> {
  return new Promise((resolve) => {
    socket.once('data', () => resolve())
    socket.write(message)
  })
}

/** Microseconds of a round trip, the median of many. */
async function median(socket: Socket): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < TRIPS; i++) {
    const began = performance.now()
    await trip(socket, PING)
    times.push(performance.now() - began)
  }
  return 1000 * middle(times)
}

function middle(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] as number
}

function residentMiB({ pid }: ChildProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024
}

async function main(): Promise<void> {
  const path = join(dir, 'm.sock')
  const echoPath = join(dir, 'echo.sock')
  const args = [entry, 'serve', '--store', join(dir, 'store')]
  const starts: number[] = []
  const bare: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const { child, ms } = await start([...args, '--listen', `unix:${join(dir, `s${round}`)}`])
    starts.push(ms)
    child.kill()
    const began = performance.now()
    spawnSync(process.execPath, ['-e', '0'])
    bare.push(performance.now() - began)
  }
  process.stdout.write(
    `start to ready       ${middle(starts).toFixed(0)} ms, ${(middle(starts) / middle(bare)).toFixed(2)} x node -e 0 (${middle(bare).toFixed(0)} ms)\n`,
  )

  const server = await start([...args, '--listen', `unix:${path}`, '--listen', 'tcp:127.0.0.1:0'])
  const port = Number(server.listen[1]?.split(':').at(-1))
  const idle = residentMiB(server.child)
  const echoTcp = await start(['-e', ECHO, 'tcp'])
  await start(['-e', ECHO, echoPath])
  const pairs: Array<[string, Socket, Socket]> = [
    ['Unix socket', await open(path, true), await open(echoPath, false)],
    ['TCP', await open(port, true), await open(Number(echoTcp.listen[0]?.split(':').at(-1)), false)],
  ]
  for (const [name, ours, echo] of pairs) {
    const rounds: Array<{ ours: number; echo: number }> = []
    for (let round = 0; round < ROUNDS; round++)
      rounds.push({ ours: await median(ours), echo: await median(echo) })
    const ratios = rounds.map((round) => round.ours / round.echo)
    const spread = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
    process.stdout.write(
      `ping over ${name.padEnd(11)}${middle(rounds.map((round) => round.ours)).toFixed(0)} us, ${middle(ratios).toFixed(2)} x echo (${middle(rounds.map((round) => round.echo)).toFixed(0)} us; rounds ${spread})\n`,
    )
  }
  const crowd: Socket[] = []
  for (let i = 0; i < CONNECTIONS; i++) crowd.push(await open(path, true))
  for (const socket of crowd) await trip(socket, PING)
  process.stdout.write(
    `memory               ${idle.toFixed(0)} MiB idle, ${residentMiB(server.child).toFixed(0)} MiB with ${CONNECTIONS} connections\n`,
  )
  for (const socket of [...crowd, ...pairs.flatMap(([, ours, echo]) => [ours, echo])]) socket.destroy()
}

try {
  await main()
} finally {
  for (const child of children) child.kill('SIGKILL')
  rmSync(dir, { recursive: true, force: true })
}
