import { spawn, spawnSync } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SetupError, say } from './say.mjs'

/** The root of the checkout. */
export const ROOT = fileURLToPath(new URL('..', import.meta.url))

const WINDOWS = process.platform === 'win32'

/** The virtual environment at the root, and its Python. */
export const VENV = join(ROOT, '.venv')
export const VENV_BIN = join(VENV, WINDOWS ? 'Scripts' : 'bin')
export const VENV_PYTHON = join(VENV_BIN, WINDOWS ? 'python.exe' : 'python')

/** Node 24 as the npm package `node` brings it. */
export const NODE_24 = join(ROOT, 'node_modules', 'node', 'bin', WINDOWS ? 'node.exe' : 'node')

/** The environment of every child: Node 24 and the tools of this checkout come first. */
export function toolEnvironment(extra = {}) {
  const path = [join(ROOT, 'node_modules', '.bin'), VENV_BIN, process.env.PATH].join(delimiter)
  return { ...process.env, PATH: path, ...extra }
}

/** Run a program to its end; gives its status and output. A program that is not there has status null. */
export function look(program, args, options = {}) {
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    cwd: ROOT,
    timeout: 60_000,
    ...options,
  })
  return { status, stdout: stdout ?? '', stderr: stderr ?? '' }
}

/** Run a step quietly, saying what it is; everything that it printed is shown when it fails. */
export async function step(title, program, args, { env = process.env, mend, shell = false } = {}) {
  const started = Date.now()
  process.stdout.write(`${title} … `)
  const { status, output } = await collect(program, args, {
    env,
    cwd: ROOT,
    shell,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  say(status === 0 ? seconds(started) : 'failed')
  if (status !== 0) throw new SetupError(`${output.trim()}\n\n${title} failed. ${mend ?? ''}`.trim())
  return output
}

/** How long ago that was, for a person. */
export function seconds(started) {
  return `${((Date.now() - started) / 1000).toFixed(0)} s`
}

/** Run a program with its output going where ours goes; gives its exit status. */
export async function pass(program, args, env = toolEnvironment()) {
  const child = spawn(program, args, { cwd: ROOT, env, stdio: ['ignore', 'inherit', 'inherit'] })
  return ended(child)
}

/** Run a program and give its status and all it printed. */
export async function collect(program, args, options) {
  const child = spawn(program, args, options)
  const chunks = []
  child.stdout.on('data', (chunk) => chunks.push(chunk))
  child.stderr.on('data', (chunk) => chunks.push(chunk))
  const status = await ended(child)
  return { status, output: Buffer.concat(chunks).toString() }
}

function ended(child) {
  return new Promise((resolve) => {
    child.once('error', () => resolve(null))
    child.once('close', (status, signal) => resolve(signal === null ? status : 1))
  })
}
