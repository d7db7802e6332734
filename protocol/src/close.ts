import { z } from 'zod'
import { defineMethod } from './method.ts'
import { memoryName, nothing } from './shapes.ts'

/** Let go of a memory. */
export const close = defineMethod({
  method: 'close',
  doc: 'This connection holds the memory no more; it may be used again at any time.',
  verb: null,
  params: z.strictObject({ memory: memoryName }),
  result: nothing,
  errors: [],
  example: { params: { memory: 'prefs' }, result: null },
})

export type CloseParams = z.infer<typeof close.params>
export type CloseResult = z.infer<typeof close.result>
