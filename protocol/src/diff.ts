import { z } from 'zod'
import { COMMIT_ID, ITEM, PARENT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { at, branch, change, memoryName } from './shapes.ts'

/** Compare two commits. */
export const diff = defineMethod({
  method: 'diff',
  doc: 'Lists the items that differ between two commits.',
  verb: 'read',
  params: z.strictObject({ memory: memoryName, branch, from: at, to: at }),
  result: z.looseObject({ changes: z.array(change) }),
  errors: ['invalid_ref', 'corrupt_store', 'too_large'],
  example: {
    params: { memory: 'prefs', from: PARENT_ID, to: COMMIT_ID },
    result: { changes: [{ id: ITEM.id, kind: 'added', new: ITEM }] },
  },
})

export type DiffParams = z.infer<typeof diff.params>
export type DiffResult = z.infer<typeof diff.result>
