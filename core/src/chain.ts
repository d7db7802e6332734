import { breathe } from './breathe.ts'
import type { EngineReader, Row } from './engine/engine.ts'
import { MnemError } from './errors.ts'

/** A stretch of a line that a chain of first parents runs through: its rows from the line's first up to depth `to`. */
export interface Stretch {
  line: number
  to: number
}

const CHUNK = 256

/** The stretches behind `row`, its own line first, back to the root. */
export async function stretches(reader: EngineReader, row: Row): Promise<Stretch[]> {
  const found: Stretch[] = [{ line: row.line, to: row.depth }]
  for (let at = row; ; ) {
    const [first] = await reader.line(at.memory, at.line, 0, at.depth, { limit: 1 })
    const parent = first?.parents[0]
    if (parent === undefined) return found
    ;[at] = (await reader.rows(at.memory, [parent])) as [Row]
    found.push({ line: at.line, to: at.depth })
  }
}

/** The rows on the chain of first parents, from `row` back to the root. */
export async function* backwards(reader: EngineReader, row: Row): AsyncGenerator<Row> {
  let depth = row.depth
  for (const { line, to } of await stretches(reader, row)) {
    if (depth !== to) throw gap(line, depth)
    for (let more = true; more; ) {
      const rows = await reader.line(row.memory, line, 0, depth, { limit: CHUNK, reverse: true })
      for (const next of rows) {
        if (next.depth !== depth) throw gap(line, depth)
        yield next
        depth--
      }
      more = rows.length === CHUNK
      await breathe()
    }
  }
  if (depth >= 0) throw gap(row.line, depth)
}

/** The rows on the chain of first parents from behind `base` (or the root) up to `row`, oldest first. */
export async function* forwards(
  reader: EngineReader,
  row: Row,
  base?: Pick<Row, 'depth'>,
): AsyncGenerator<Row> {
  let depth = base === undefined ? 0 : base.depth + 1
  for (const { line, to } of (await stretches(reader, row)).reverse()) {
    while (depth <= to) {
      await breathe()
      for (const next of await reader.line(row.memory, line, depth, to, { limit: CHUNK })) {
        if (next.depth !== depth) break
        yield next
        depth++
      }
      if (depth <= to && (await reader.line(row.memory, line, depth, depth)).length === 0)
        throw gap(line, depth)
    }
  }
}

/** The last place that two chains share; undefined where they share none. */
export function forkOf(
  a: readonly Stretch[],
  b: readonly Stretch[],
): Pick<Row, 'line' | 'depth'> | undefined {
  for (const { line, to } of a) {
    const other = b.find((stretch) => stretch.line === line)
    if (other !== undefined) return { line, depth: Math.min(to, other.to) }
  }
  return undefined
}

function gap(line: number, depth: number): MnemError {
  const object = `line ${line}, depth ${depth}`
  return new MnemError(
    'corrupt_store',
    `The store misses a row (${object}). Restore it from a backup; nothing was changed.`,
    {
      object,
      problem: 'missing',
    },
  )
}

/** Whether a row at this place is on the chain that runs through these stretches. */
export function runsThrough(chain: readonly Stretch[], place: Pick<Row, 'line' | 'depth'>): boolean {
  return chain.some(({ line, to }) => line === place.line && place.depth <= to)
}
