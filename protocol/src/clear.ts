import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { forgetResult, writeFields } from './shapes.ts'

/** Forget everything. */
export const clear = defineMethod({
  method: 'clear',
  doc: 'Forgets every item in one commit; numbering starts again, and the history stays readable.',
  verb: 'write',
  params: z.strictObject({ ...writeFields }),
  result: forgetResult,
  errors: ['conflict', 'busy', 'store_io', 'corrupt_store', 'not_found', 'cancelled'],
  example: { params: { memory: 'prefs' }, result: { commit: COMMIT_ID, forgotten: 8 } },
})

export type ClearParams = z.infer<typeof clear.params>
export type ClearResult = z.infer<typeof clear.result>
