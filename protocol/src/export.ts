import { z } from 'zod'
import { defineMethod } from './method.ts'
import { count, memoryName } from './shapes.ts'

/** Write a memory out. */
export const exportMethod = defineMethod({
  method: 'export',
  doc: 'Gives the whole history of a memory in numbered parts.',
  verb: 'read',
  params: z.strictObject({
    memory: memoryName,
    format: z.enum(['changes', 'mnem']).optional().meta({ description: 'Default `changes` (format.md).' }),
    part: count.optional().meta({ description: 'Which part; default 0.' }),
  }),
  result: z.looseObject({ part: count, text: z.string(), more: z.literal(true).optional() }),
  errors: ['not_found', 'corrupt_store', 'too_large', 'cancelled'],
  example: {
    params: { memory: 'prefs' },
    result: { part: 0, text: '{"format":"mnem-changes","version":1}' },
  },
})

export type ExportParams = z.infer<typeof exportMethod.params>
export type ExportResult = z.infer<typeof exportMethod.result>
