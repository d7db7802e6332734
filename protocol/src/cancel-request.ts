import { z } from 'zod'
import { defineMethod } from './method.ts'

/** Cancel a request that is under way. */
export const cancelRequest = defineMethod({
  method: '$/cancelRequest',
  doc: 'Notification: a write is cancelled before its commit (its answer is `cancelled`) or done and answered.',
  verb: null,
  params: z.strictObject({ id: z.union([z.string(), z.int()]).meta({ description: 'Id of the request.' }) }),
  result: null,
  errors: [],
  example: { params: { id: 7 } },
})
