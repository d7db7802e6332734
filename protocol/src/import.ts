import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { count, memoryName, objectId } from './shapes.ts'

/** Read a memory in. */
export const importMethod = defineMethod({
  method: 'import',
  doc: 'Takes an export in numbered parts; every id is derived again, and one mismatch refuses all of it.',
  verb: 'admin',
  params: z.strictObject({
    memory: memoryName,
    format: z.enum(['changes', 'mnem']).optional(),
    part: count,
    text: z.string(),
    more: z.literal(true).optional().meta({ description: 'Another part follows.' }),
  }),
  result: z.looseObject({ part: count, commit: objectId.optional() }),
  errors: ['conflict', 'busy', 'store_io', 'corrupt_store', 'too_large', 'cancelled'],
  example: {
    params: { memory: 'prefs', part: 0, text: '{"format":"mnem-changes","version":1}' },
    result: { part: 0, commit: COMMIT_ID },
  },
})

export type ImportParams = z.infer<typeof importMethod.params>
export type ImportResult = z.infer<typeof importMethod.result>
