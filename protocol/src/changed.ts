import { z } from 'zod'
import { COMMIT_ID, ITEM } from './examples.ts'
import { defineMethod } from './method.ts'
import { change, commitish, memoryName } from './shapes.ts'

/** What one commit did. */
export const changed = defineMethod({
  method: 'changed',
  doc: 'Lists what a commit changed against its first parent.',
  verb: 'read',
  params: z.strictObject({ memory: memoryName, commit: commitish }),
  result: z.looseObject({ changes: z.array(change) }),
  errors: ['invalid_ref', 'corrupt_store', 'too_large'],
  example: {
    params: { memory: 'prefs', commit: COMMIT_ID },
    result: { changes: [{ id: ITEM.id, kind: 'added', new: ITEM }] },
  },
})

export type ChangedParams = z.infer<typeof changed.params>
export type ChangedResult = z.infer<typeof changed.result>
