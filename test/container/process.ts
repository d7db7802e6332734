import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** npm's configuration and the certificates of this machine: what a build may need and an image must not hold. */
export const SECRETS: Record<string, string | undefined> = {
  npmrc: process.env.npm_config_userconfig ?? join(homedir(), '.npmrc'),
  ca: process.env.NODE_EXTRA_CA_CERTS,
}

/** Run a program to its end and give what it printed; throws with all of it when it fails. */
export function output(
  program: string,
  args: string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string; timeout?: number } = {},
): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    timeout: 300_000,
    ...options,
  })
  if (status !== 0)
    throw new Error(
      `${program} ${args.join(' ')} ended with ${status ?? error?.message}:\n${stdout}\n${stderr}`,
    )
  return stdout
}

/** A process whose log is read as it comes. */
export class Logged {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  log = ''
  private isOver = false
  private waiters: Array<() => void> = []

  constructor(program: string, args: string[]) {
    this.child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        this.log += chunk
        this.wake()
      })
    this.ended = new Promise((resolve) => {
      this.child.on('close', (code) => {
        this.isOver = true
        this.wake()
        resolve(code)
      })
    })
  }

  async until(text: string): Promise<void> {
    while (!this.log.includes(text)) {
      if (this.isOver) throw new Error(`it ended without ${text}:\n${this.log}`)
      await new Promise<void>((resolve) => this.waiters.push(resolve))
    }
  }

  private wake(): void {
    const waiters = this.waiters
    this.waiters = []
    for (const resolve of waiters) resolve()
  }
}
