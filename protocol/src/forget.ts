import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { at, forgetResult, itemId, writeFields } from './shapes.ts'

/** Forget some items. */
export const forget = defineMethod({
  method: 'forget',
  doc: 'Forgets the named items in one commit: all of them, or none.',
  verb: 'write',
  params: z.strictObject({
    ...writeFields,
    ids: z.array(itemId).min(1, 'is empty; give at least one id'),
    at: at
      .optional()
      .meta({ description: 'The commit where the caller read the ids; a merge may have moved them.' }),
  }),
  result: forgetResult,
  errors: ['not_found', 'invalid_ref', 'conflict', 'busy', 'store_io', 'corrupt_store', 'cancelled'],
  example: {
    params: { memory: 'prefs', ids: ['prefs:0000000007'] },
    result: { commit: COMMIT_ID, forgotten: 1 },
  },
})

export type ForgetParams = z.infer<typeof forget.params>
export type ForgetResult = z.infer<typeof forget.result>
