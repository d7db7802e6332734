import { z } from 'zod'
import { defineMethod } from './method.ts'
import { at, count, itemId, memoryName } from './shapes.ts'
import { text } from './text.ts'

/** Erase content for good. */
export const purge = defineMethod({
  method: 'purge',
  doc: 'Erases the content of items from every version, under every number they have had; ids and commits stay.',
  verb: 'admin',
  params: z.strictObject({
    memory: memoryName,
    ids: z.array(itemId).min(1, 'is empty; give at least one id'),
    at: at.optional().meta({ description: 'The commit where the caller read the ids.' }),
    reason: text({ min: 1, max: 65_536, description: 'Why; it is kept.' }),
  }),
  result: z.looseObject({ purged: z.array(itemId), epoch: count }),
  errors: ['not_found', 'invalid_ref', 'busy', 'store_io', 'corrupt_store'],
  example: {
    params: { memory: 'prefs', ids: ['prefs:0000000007'], reason: 'a password' },
    result: { purged: ['prefs:0000000007'], epoch: 1 },
  },
})

export type PurgeParams = z.infer<typeof purge.params>
export type PurgeResult = z.infer<typeof purge.result>
