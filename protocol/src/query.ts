import { z } from 'zod'
import { LISTING } from './examples.ts'
import { defineMethod } from './method.ts'
import { at, branch, have, listing, memoryName } from './shapes.ts'
import { text } from './text.ts'

/** Read a memory. */
export const query = defineMethod({
  method: 'query',
  doc: 'Gives every live item at the head or at `at`, oldest first; `query` is accepted and ignored.',
  verb: 'read',
  params: z.strictObject({
    memory: memoryName,
    query: text({
      max: 1_048_576,
      description: 'Ignored: everything is answered, as ListMemory does.',
    }).optional(),
    branch,
    at: at.optional(),
    have: have.optional(),
  }),
  result: listing,
  errors: ['not_found', 'invalid_ref', 'corrupt_store', 'too_large'],
  example: { params: { memory: 'prefs' }, result: LISTING },
})

export type QueryParams = z.infer<typeof query.params>
export type QueryResult = z.infer<typeof query.result>
