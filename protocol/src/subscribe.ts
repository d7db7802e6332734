import { z } from 'zod'
import { defineMethod } from './method.ts'
import { memoryName, nothing } from './shapes.ts'

/** Be told of changes. */
export const subscribe = defineMethod({
  method: 'subscribe',
  doc: 'From now on each change of the memory is told by a `memory_changed` notification.',
  verb: 'read',
  params: z.strictObject({ memory: memoryName }),
  result: nothing,
  errors: [],
  example: { params: { memory: 'prefs' }, result: null },
})

export type SubscribeParams = z.infer<typeof subscribe.params>
export type SubscribeResult = z.infer<typeof subscribe.result>
