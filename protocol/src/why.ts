import { z } from 'zod'
import { COMMIT, ITEM } from './examples.ts'
import { defineMethod } from './method.ts'
import { at, branch, commit, itemId, memoryName, storedItem } from './shapes.ts'

/** Trace a belief to its commit. */
export const why = defineMethod({
  method: 'why',
  doc: 'Names the commit that gave an item its value, followed through merges.',
  verb: 'read',
  params: z.strictObject({ memory: memoryName, id: itemId, branch, at: at.optional() }),
  result: z.looseObject({ commit, item: storedItem }),
  errors: ['not_found', 'invalid_ref', 'corrupt_store'],
  example: { params: { memory: 'prefs', id: ITEM.id }, result: { commit: COMMIT, item: ITEM } },
})

export type WhyParams = z.infer<typeof why.params>
export type WhyResult = z.infer<typeof why.result>
