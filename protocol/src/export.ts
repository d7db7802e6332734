import { z } from 'zod'
import { defineMethod } from './method.ts'
import { memoryName } from './shapes.ts'
import { text } from './text.ts'

/** Write a memory out. */
export const exportMethod = defineMethod({
  method: 'export',
  doc: 'Gives the whole history of a memory as JSON Lines, a part at a time; all parts together are what it was when the first was asked for.',
  verb: 'read',
  params: z.strictObject({
    memory: memoryName,
    format: z.enum(['changes']).optional().meta({ description: 'Default `changes`.' }),
    after: text({ max: 255, description: 'Go on here: the `next` of the part before.' }).optional(),
  }),
  result: z.looseObject({
    text: z.string().meta({ description: 'Whole lines.' }),
    next: z.string().optional().meta({ description: 'Another part follows.' }),
  }),
  errors: ['not_found', 'corrupt_store', 'too_large', 'cancelled'],
  example: {
    params: { memory: 'prefs' },
    result: { text: '{"format":"mnem-changes","version":1}\n', next: '120.57.57.64' },
  },
})

export type ExportParams = z.infer<typeof exportMethod.params>
export type ExportResult = z.infer<typeof exportMethod.result>
