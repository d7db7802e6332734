import type { Stretch } from './chain.ts'
import type { EngineReader, Row } from './engine/engine.ts'
import { after, itemKey, MAX_DEPTH_ON_LINE, readItemValue } from './keys.ts'

/** A commit that set an item or removed it. */
export interface ItemEvent {
  seq: number
  set: boolean
}

const PAGE = 256

/** The last commit on a chain of first parents that set this item or removed it; undefined where none did. */
export async function lastEvent(
  reader: EngineReader,
  memory: number,
  number: number,
  chain: readonly Stretch[],
): Promise<ItemEvent | undefined> {
  for (const { line, to } of chain) {
    const [from, end] = range(number, line, to)
    const [entry] = await reader.entries(memory, from, end, { limit: 1, reverse: true })
    if (entry !== undefined) return readItemValue(entry.value)
  }
  return undefined
}

/** All commits on a chain that set this item or removed it, newest first. */
export async function* events(
  reader: EngineReader,
  memory: number,
  number: number,
  chain: readonly Stretch[],
): AsyncGenerator<ItemEvent> {
  for (const { line, to } of chain) {
    const [from, top] = range(number, line, to)
    for (let end: Uint8Array = top; ; ) {
      const page = await reader.entries(memory, from, end, { limit: PAGE, reverse: true })
      for (const { value } of page) yield readItemValue(value)
      const last = page.at(-1)
      if (last === undefined || page.length < PAGE) break
      end = last.key
    }
  }
}

function range(number: number, line: number, to: Row['depth']): [from: Buffer, end: Buffer] {
  return [itemKey(number, line, 0), after(itemKey(number, line, Math.min(to, MAX_DEPTH_ON_LINE)))]
}
