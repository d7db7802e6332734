import { spawn } from 'node:child_process'
import type { Log } from '../log.ts'

const BOUND_MS = 5000

/**
 * Tell the service manager how things are (sd_notify), where NOTIFY_SOCKET says that it wants to know. Its socket is a
 * datagram one, which Node can't make, so systemd's own program does it: the unit needs `NotifyAccess=all`.
 */
export function notifyManager(state: 'ready' | 'stopping', log: Log, env = process.env): void {
  if (!env.NOTIFY_SOCKET) return
  const child = spawn('systemd-notify', [`--${state}`], { stdio: 'ignore', timeout: BOUND_MS, env })
  const complain = (why: string) => log.warn({ state, why }, 'the service manager could not be told')
  child.once('error', (error: NodeJS.ErrnoException) => complain(error.code ?? error.message))
  child.once('exit', (code, signal) => {
    if (code !== 0) complain(signal ?? `systemd-notify ended with ${code}`)
  })
  child.unref()
}
