import type { Verb } from '@mnem/protocol'

/** A memory's exact name, or with `*` at its end all names that begin so; `*` alone is every memory. */
export type MemoryRule = string

/** What a connection may do. */
export interface Access {
  /** Name of the token, for the log; null where none was asked for. */
  readonly token: string | null
  readonly verbs: ReadonlySet<Verb>
  readonly memories: readonly MemoryRule[]
  /** Who commits, whatever the client says; undefined: the client says. */
  readonly author: string | undefined
}

/** Everything: the client that started the daemon, and every connection where no tokens are kept. */
export const EVERYTHING: Access = {
  token: null,
  verbs: new Set<Verb>(['read', 'write', 'admin']),
  memories: ['*'],
  author: undefined,
}

/** Whether a rule covers a memory. */
export function covers(rule: MemoryRule, memory: string): boolean {
  return rule.endsWith('*') ? memory.startsWith(rule.slice(0, -1)) : memory === rule
}

/** Whether every memory is covered, those too that do not exist yet. */
export function coversAll({ memories }: Access): boolean {
  return memories.includes('*')
}

/** Whether this memory is covered. */
export function isVisible({ memories }: Access, memory: string): boolean {
  return memories.some((rule) => covers(rule, memory))
}

/** Why a request is refused, as a sentence that tells nothing of what exists; undefined when it may be made. */
export function refusal(access: Access, verb: Verb | null, memory: string | undefined): string | undefined {
  if (verb === null) return undefined
  if (!access.verbs.has(verb)) return `This token may not ${verb}; use one that was made with --verb ${verb}.`
  if (memory === undefined || isVisible(access, memory)) return undefined
  return 'This token is not for that memory; use one that was made with a --memory that covers it.'
}
