import type { MemoriesRequest, MemoryInfo, Stores } from '@mnem/core'
import { type Access, coversAll, type MemoryRule } from './access.ts'

type Page = Awaited<ReturnType<Stores['memories']>>

const DEFAULT_PAGE = 1000

/**
 * A page of the memories that this access covers, by name. Each rule is one stretch of the names, so each is asked for its
 * own page, and what is certain to be complete of them together is the answer.
 */
export async function visibleMemories(
  stores: Pick<Stores, 'memories'>,
  access: Access,
  request: MemoriesRequest,
): Promise<Page> {
  if (coversAll(access)) return stores.memories(request)
  const limit = request.limit ?? DEFAULT_PAGE
  const found = new Map<string, MemoryInfo>()
  let certain: string | undefined
  for (const rule of access.memories) {
    const page = await pageOf(stores, rule, { ...request, limit })
    for (const memory of page.memories) found.set(memory.name, memory)
    if (page.next !== undefined && (certain === undefined || compare(page.next, certain) < 0))
      certain = page.next
  }
  const sorted = Array.from(found.values())
    .filter(({ name }) => certain === undefined || compare(name, certain) <= 0)
    .sort((a, b) => compare(a.name, b.name))
  const memories = sorted.slice(0, limit)
  const next = sorted.length > limit ? memories.at(-1)?.name : certain
  return next === undefined ? { memories } : { memories, next }
}

async function pageOf(
  stores: Pick<Stores, 'memories'>,
  rule: MemoryRule,
  request: MemoriesRequest,
): Promise<Page> {
  const asked = request.prefix ?? ''
  if (!rule.endsWith('*')) {
    if (!rule.startsWith(asked) || (request.after !== undefined && compare(rule, request.after) <= 0))
      return { memories: [] }
    // Of all names that begin with this one, it is itself the first.
    const { memories } = await stores.memories({ prefix: rule, limit: 1 })
    return { memories: memories.filter(({ name }) => name === rule) }
  }
  const prefix = rule.slice(0, -1)
  if (!prefix.startsWith(asked) && !asked.startsWith(prefix)) return { memories: [] }
  return stores.memories({ ...request, prefix: prefix.length > asked.length ? prefix : asked })
}

/** The order of the names' UTF-8 bytes, which is the store's. */
function compare(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
