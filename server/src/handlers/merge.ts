import { merge } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleMerge = defineHandler(merge, 'write', async ({ stores, signal, access }, params) => {
  const result = await stores.merge(params, { signal })
  if (result.conflicts === undefined || access.verbs.has('read')) return result
  // Who may write and not read learns where the conflicts are, and nothing of what stands there.
  const conflicts = result.conflicts.map(({ id, kind }) => ({
    id,
    kind,
    base: null,
    ours: null,
    theirs: null,
  }))
  return { ...result, conflicts }
})
