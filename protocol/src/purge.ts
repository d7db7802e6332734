import { z } from 'zod'
import { defineMethod } from './method.ts'
import { at, branch, count, itemId, memoryName, writeFields } from './shapes.ts'
import { text } from './text.ts'

/** Erase content for good. */
export const purge = defineMethod({
  method: 'purge',
  doc: 'Erases the content of items from every version, under every number they have had, and from every file of the store; ids and commits stay. Asked again it erases again: `busy` with `reason` `erase` says that the content is gone from the memory, and that another process keeps its last bytes in the log of the database.',
  verb: 'admin',
  params: z.strictObject({
    memory: memoryName,
    branch,
    ids: z.array(itemId).min(1, 'is empty; give at least one id').meta({ description: 'At most 1,000.' }),
    at: at.optional().meta({
      description:
        'The commit where the caller read the ids. Without it they name what is live at the head or, where nothing is, what was last called so on the branch.',
    }),
    author: writeFields.author,
    reason: text({ min: 1, max: 65_536, description: 'Why; it is kept.' }),
  }),
  result: z.looseObject({
    purged: z.array(itemId),
    epoch: count,
    elsewhere: z.array(memoryName).meta({
      description:
        'Other memories that hold the same items, as an import of this one does, and that this connection may see: purge them there, too.',
    }),
  }),
  errors: ['not_found', 'invalid_ref', 'busy', 'store_io', 'corrupt_store', 'too_large', 'cancelled'],
  example: {
    params: { memory: 'prefs', ids: ['prefs:0000000007'], reason: 'a password' },
    result: { purged: ['prefs:0000000007'], epoch: 1, elsewhere: [] },
  },
})

export type PurgeParams = z.infer<typeof purge.params>
export type PurgeResult = z.infer<typeof purge.result>
