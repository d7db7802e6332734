import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { itemId, newItem, objectId, replayed, writeFields } from './shapes.ts'

/** Store items. */
export const add = defineMethod({
  method: 'add',
  doc: 'Stores items: all of them in one commit, or none.',
  verb: 'write',
  params: z.strictObject({
    ...writeFields,
    items: z.array(newItem).min(1, 'is empty; give at least one item').meta({
      description: 'At least one, at most `items_per_add`.',
    }),
  }),
  result: z.looseObject({ commit: objectId, ids: z.array(itemId), replayed }),
  errors: ['conflict', 'busy', 'store_io', 'corrupt_store', 'too_large', 'not_found', 'cancelled'],
  example: {
    params: {
      memory: 'prefs',
      items: [
        {
          content: { type: 'json', json: { unit: 'metric', weight: 1.5 } },
          mime_type: 'application/json',
          metadata: { topic: 'units' },
          provenance: { agent_step: 'turn 3' },
        },
      ],
      idempotency_key: '7f6f2f0c',
    },
    result: { commit: COMMIT_ID, ids: ['prefs:0000000007'] },
  },
})

export type AddParams = z.infer<typeof add.params>
export type AddResult = z.infer<typeof add.result>
