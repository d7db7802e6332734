import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { at, branchName, count, itemId, memoryName, objectId, storedItem } from './shapes.ts'

const conflict = z.looseObject({
  id: itemId,
  kind: z.string(),
  base: storedItem.nullable(),
  ours: storedItem.nullable(),
  theirs: storedItem.nullable(),
})

/** Bring a branch into another. */
export const merge = defineMethod({
  method: 'merge',
  doc: "Merges a branch into another, keeping both sides' items.",
  verb: 'write',
  params: z.strictObject({
    memory: memoryName,
    from: at,
    into: branchName.optional().meta({ description: 'Default: the default branch.' }),
    strategy: z.string().max(64).optional(),
    resolutions: z.record(z.string(), z.unknown()).optional(),
  }),
  result: z.looseObject({
    status: z.enum(['up_to_date', 'fast_forward', 'merged', 'conflicts']),
    commit: objectId.optional(),
    renumbered: z.array(z.looseObject({ from: itemId, to: itemId, count })).optional(),
    conflicts: z.array(conflict).optional(),
  }),
  errors: ['not_found', 'invalid_ref', 'conflict', 'busy', 'store_io', 'corrupt_store', 'cancelled'],
  example: { params: { memory: 'prefs', from: 'trial' }, result: { status: 'merged', commit: COMMIT_ID } },
})

export type MergeParams = z.infer<typeof merge.params>
export type MergeResult = z.infer<typeof merge.result>
