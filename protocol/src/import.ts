import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { count, memoryName, objectId } from './shapes.ts'

/** Read a memory in. */
export const importMethod = defineMethod({
  method: 'import',
  doc: 'Takes an export in numbered parts, all on one connection; every id is derived again, and the first mismatch refuses all of it. The memory is there once the last part is.',
  verb: 'admin',
  params: z.strictObject({
    memory: memoryName.meta({ description: 'Its new name; item ids keep the prefix that they have.' }),
    format: z.enum(['changes']).optional().meta({ description: 'Default `changes`.' }),
    part: count.meta({ description: 'From 0, one after another; 0 begins anew.' }),
    text: z.string().meta({ description: 'The next piece; lines may be cut anywhere.' }),
    force: z.literal(true).optional().meta({
      description: 'With part 0: take it even if it brings back content that was purged from this store.',
    }),
    more: z.literal(true).optional().meta({ description: 'Another part follows.' }),
  }),
  result: z.looseObject({
    part: count,
    commit: objectId
      .optional()
      .meta({ description: 'With the last part: what its default branch points at.' }),
    commits: count.optional().meta({ description: 'With the last part: how many commits there are.' }),
  }),
  errors: ['conflict', 'busy', 'store_io', 'corrupt_store', 'too_large', 'cancelled'],
  example: {
    params: { memory: 'prefs', part: 0, text: '{"format":"mnem-changes","version":1}' },
    result: { part: 0, commit: COMMIT_ID, commits: 1 },
  },
})

export type ImportParams = z.infer<typeof importMethod.params>
export type ImportResult = z.infer<typeof importMethod.result>
