import { z } from 'zod'
import { COMMIT, COMMIT_ID, LISTING } from './examples.ts'
import { defineMethod } from './method.ts'
import { at, branch, commit, have, listing, memoryName } from './shapes.ts'

/** Show a memory as it was. */
export const show = defineMethod({
  method: 'show',
  doc: 'Gives the items at a commit or time, purged ones too, and the commit itself; without `at` the head.',
  verb: 'read',
  params: z.strictObject({ memory: memoryName, branch, at: at.optional(), have: have.optional() }),
  result: listing.extend({ commit_info: commit.nullable() }),
  errors: ['not_found', 'invalid_ref', 'corrupt_store', 'too_large'],
  example: {
    params: { memory: 'prefs', at: COMMIT_ID.slice(0, 8) },
    result: { ...LISTING, commit_info: COMMIT },
  },
})

export type ShowParams = z.infer<typeof show.params>
export type ShowResult = z.infer<typeof show.result>
