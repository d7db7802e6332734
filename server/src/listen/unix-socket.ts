import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import { LockedError, withFileLock } from '../file-lock.ts'
import { ListenError } from './listen-error.ts'

const CLAIM_MS = 5000
/** How long a socket file may take to show whether somebody listens there. */
const PROBE_MS = 2000

/**
 * Have `server` listen at `path`, with this file mode from its first moment. A socket file that a killed server left
 * behind is replaced; one that a live server listens on, and any other file, is left alone. Of several servers that
 * start at once exactly one gets the path: they look and listen one after another, under a lock file beside it.
 *
 * Throws `ListenError`.
 */
export async function listenOnUnixSocket(server: Server, path: string, mode: number): Promise<void> {
  try {
    await withFileLock(`${path}.lock`, CLAIM_MS, async () => {
      await clear(path)
      await bind(server, path)
      chmodSync(path, mode)
    })
  } catch (error) {
    if (error instanceof ListenError) throw error
    if (error instanceof LockedError)
      throw new ListenError(`${path}: other servers are starting there all the time; start only one.`)
    throw new ListenError(`${path}: ${reasonOf(error, path)}`)
  }
}

/** See that nothing stands at the path, or remove a socket that nobody listens on. */
async function clear(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) {
    const what = found.isDirectory() ? 'a directory' : found.isSymbolicLink() ? 'a symbolic link' : 'a file'
    throw new ListenError(`${path} is ${what} and no socket; nothing was changed. Give another path.`)
  }
  const answer = await probe(path)
  if (answer === 'ECONNREFUSED') unlinkSync(path)
  else if (answer !== 'ENOENT') {
    const sure = answer === 'connected' ? '' : ` (${answer})`
    throw new ListenError(
      `${path} is in use by a server that runs${sure}; end that one first, or give another path.`,
    )
  }
}

/** What connecting there gives: `connected`, or the code of the error. */
function probe(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(path)
    const done = (answer: string) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(PROBE_MS, () => done('no answer'))
    socket.once('connect', () => done('connected'))
    socket.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? error.message))
  })
}

function bind(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.once('listening', () => {
      server.off('error', reject)
      resolve()
    })
    // The file is made within this call; nobody but us may connect before its mode is set.
    const before = process.umask(0o177)
    try {
      server.listen(path)
    } finally {
      process.umask(before)
    }
  })
}

function reasonOf(error: unknown, path: string): string {
  const { code, message } = error as NodeJS.ErrnoException & { errcode?: number }
  const directory = dirname(path)
  const found = lstatSync(directory, { throwIfNoEntry: false })
  if (found === undefined) return `the directory ${directory} is not there; make it first.`
  if (code === 'ERR_SQLITE_ERROR' || code === 'EACCES' || code === 'EROFS' || code === 'EPERM') {
    return `this process (user ${process.geteuid?.() ?? '?'}) can't make a socket in ${directory}, which belongs to user ${found.uid}; give it a directory that it may write to.`
  }
  return `can't listen there (${code ?? message}).`
}
