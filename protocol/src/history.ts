import { z } from 'zod'
import { COMMIT, ITEM } from './examples.ts'
import { defineMethod } from './method.ts'
import { branch, commit, itemId, memoryName, storedItem } from './shapes.ts'

/** The life of an item. */
export const history = defineMethod({
  method: 'history',
  doc: 'Lists every commit that set or removed an item, newest first.',
  verb: 'read',
  params: z.strictObject({ memory: memoryName, branch, id: itemId }),
  result: z.looseObject({
    entries: z.array(
      z.looseObject({ commit, kind: z.enum(['added', 'removed', 'changed']), item: storedItem.nullable() }),
    ),
  }),
  errors: ['not_found', 'corrupt_store'],
  example: {
    params: { memory: 'prefs', id: ITEM.id },
    result: { entries: [{ commit: COMMIT, kind: 'added', item: ITEM }] },
  },
})

export type HistoryParams = z.infer<typeof history.params>
export type HistoryResult = z.infer<typeof history.result>
