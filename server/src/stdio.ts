import { createWriteStream, fstatSync } from 'node:fs'
import { Socket } from 'node:net'
import { type Readable, Writable } from 'node:stream'
import { isPipe, type LogSink } from './log-sink.ts'

const STDIN = 0
const STDOUT = 1

export interface Stdio {
  input: Readable
  output: Writable
  /** Whether nobody can read the output any more, as far as that shows without writing: on sockets, not on pipes. */
  isOutputGone: () => boolean
}

/**
 * Take standard input and output for frames. From here on everything else in this process that prints (a dependency's
 * stray `console.log`) goes where the log goes.
 */
export function takeStdio(sink: LogSink): Stdio {
  const stray = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      sink.write(chunk.toString())
      done()
    },
  })
  Object.defineProperty(process, 'stdout', { configurable: true, enumerable: true, get: () => stray })
  const { output, isOutputGone } = openOutput()
  return { input: process.stdin, output, isOutputGone }
}

function openOutput(): Omit<Stdio, 'input'> {
  if (!isPipe(STDOUT)) {
    const output = createWriteStream('', { fd: STDOUT, autoClose: false })
    return { output, isOutputGone: () => false }
  }
  // Node's own process.stdout writes to a pipe synchronously on some systems: a peer that does not read would stop
  // everything. A socket on the same descriptor never waits.
  const isSocket = fstatSync(STDOUT).isSocket()
  const readable = isSocket && !isSameFile(STDIN, STDOUT)
  const output = new Socket({ fd: STDOUT, readable, writable: true, allowHalfOpen: true })
  let ended = false
  if (readable) {
    output.on('end', () => {
      ended = true
    })
    output.resume()
  }
  return { output, isOutputGone: () => ended }
}

function isSameFile(a: number, b: number): boolean {
  try {
    const [first, second] = [fstatSync(a), fstatSync(b)]
    return first.ino === second.ino && first.dev === second.dev
  } catch {
    return false
  }
}
