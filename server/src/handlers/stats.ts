import { stats } from '@mnem/protocol'
import { coversAll } from '../access/access.ts'
import { failure } from '../session/failure.ts'
import { defineHandler } from './handler.ts'

export const handleStats = defineHandler(stats, 'read', async ({ stores, access }, params) => {
  if (params?.memory !== undefined) return stores.memoryStats(params.memory)
  if (coversAll(access)) return stores.stats()
  // Figures of the whole store would tell of memories that this token must not know of.
  throw failure(
    'unauthorized',
    'This token does not cover every memory; give `memory`, or use a token that was made with --memory "*".',
  )
})
