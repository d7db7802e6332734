import { z } from 'zod'
import { defineMethod } from './method.ts'
import { memoryName, nothing } from './shapes.ts'

/** Be told no more. */
export const unsubscribe = defineMethod({
  method: 'unsubscribe',
  doc: 'Ends what `subscribe` began.',
  verb: 'read',
  params: z.strictObject({ memory: memoryName }),
  result: nothing,
  errors: [],
  example: { params: { memory: 'prefs' }, result: null },
})

export type UnsubscribeParams = z.infer<typeof unsubscribe.params>
export type UnsubscribeResult = z.infer<typeof unsubscribe.result>
