import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = new URL('../../', import.meta.url)
const python = fileURLToPath(
  new URL(process.platform === 'win32' ? '.venv/Scripts/python.exe' : '.venv/bin/python', root),
)
const script = fileURLToPath(new URL('./oracle.py', import.meta.url))

/** Why the outside implementation can't be asked here; undefined when it can. */
export function oracleMissing(): string | undefined {
  if (existsSync(python) && spawnSync(python, ['-c', 'import mnem']).status === 0) return undefined
  const record = fileURLToPath(new URL('.venv/oracle.json', root))
  const reason = existsSync(record)
    ? (JSON.parse(readFileSync(record, 'utf8')) as { reason?: string }).reason
    : undefined
  return reason ?? 'mnem-agents 0.0.7 is not installed in .venv'
}

/** A node to be set: id, content as JSON text, and the optional fields. */
export interface OracleNode {
  id: string
  content: string
  provenance?: Record<string, string>
  event_time?: number
}

/** One commit to be made. */
export interface OracleStep {
  add: OracleNode[]
  rm: string[]
  message: string
  author: string
  time: number
}

export interface OracleAnswer {
  commit: string
  state: string
  /** Contents of the nodes that were set, as the reference holds them: JSON text. Left out for a thousand or more. */
  held: string[]
}

/** Have the outside implementation make these commits in a new store. */
export async function askOracle(steps: OracleStep[]): Promise<OracleAnswer[]> {
  const child = spawn(python, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
  const output: Buffer[] = []
  child.stdout.on('data', (chunk) => output.push(chunk))
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  child.stdin.end(steps.map(line).join(''))
  if ((await ended) !== 0) throw new Error('the outside implementation failed; its words are above')
  const lines = Buffer.concat(output).toString().trimEnd().split('\n')
  return lines.map((answer) => JSON.parse(answer))
}

function line({ add, rm, message, author, time }: OracleStep): string {
  // Contents are pasted in as text: JSON.stringify would not keep their numbers.
  const nodes = add.map(
    ({ id, content, ...extra }) => `[${JSON.stringify(id)},${content},${JSON.stringify(extra)}]`,
  )
  return `{"add":[${nodes.join(',')}],${JSON.stringify({ rm, message, author, time }).slice(1)}\n`
}
