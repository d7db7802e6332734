import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import {
  at,
  branchName,
  count,
  itemId,
  memoryName,
  newItem,
  objectId,
  replayed,
  storedItem,
  writeFields,
} from './shapes.ts'

const conflict = z.looseObject({
  id: itemId,
  kind: z.string(),
  base: storedItem.nullable(),
  ours: storedItem.nullable(),
  theirs: storedItem.nullable(),
})

const { author, message, time, idempotency_key } = writeFields

/** Bring a branch into another. */
export const merge = defineMethod({
  method: 'merge',
  doc: "Merges a branch into another, keeping both sides' items.",
  verb: 'write',
  params: z.strictObject({
    memory: memoryName,
    from: at,
    into: branchName.optional().meta({ description: 'Default: the default branch.' }),
    strategy: z
      .enum(['ours', 'theirs'])
      .optional()
      .meta({ description: 'Settles every conflict that no resolution settles.' }),
    resolutions: z
      .record(z.string(), z.union([z.enum(['ours', 'theirs', 'base', 'delete']), newItem]))
      .optional()
      .meta({
        description:
          'By the id that a conflict names: which side to take, or an item to take its place. Without a conflict there: `invalid_ref`.',
      }),
    author,
    message,
    time,
    idempotency_key,
  }),
  result: z.looseObject({
    status: z.enum(['up_to_date', 'fast_forward', 'merged', 'conflicts']),
    commit: objectId.optional(),
    renumbered: z.array(z.looseObject({ from: itemId, to: itemId, count })).optional(),
    redacted: z.array(itemId).optional().meta({
      description: 'Purged items of theirs that could not come over under another number.',
    }),
    conflicts: z.array(conflict).optional(),
    replayed,
  }),
  errors: ['not_found', 'invalid_ref', 'conflict', 'busy', 'store_io', 'corrupt_store', 'cancelled'],
  example: { params: { memory: 'prefs', from: 'trial' }, result: { status: 'merged', commit: COMMIT_ID } },
})

export type MergeParams = z.infer<typeof merge.params>
export type MergeResult = z.infer<typeof merge.result>
