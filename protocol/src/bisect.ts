import { z } from 'zod'
import { COMMIT } from './examples.ts'
import { defineMethod } from './method.ts'
import { at, commit, count, itemId, memoryName } from './shapes.ts'

/** Find where something began. */
export const bisect = defineMethod({
  method: 'bisect',
  doc: 'Finds the first commit on the first-parent chain where a condition holds.',
  verb: 'read',
  params: z.strictObject({
    memory: memoryName,
    good: at.optional().meta({ description: 'Where it does not hold yet; default before the first commit.' }),
    bad: at.optional().meta({ description: 'Where it holds; default the head.' }),
    where: z.union([
      z.strictObject({ contains: z.string().min(1).meta({ description: 'An item contains this text.' }) }),
      z.strictObject({ item: itemId }),
      z.strictObject({ count_at_least: count }),
    ]),
  }),
  result: z.looseObject({ commit, steps: count }),
  errors: ['not_found', 'invalid_ref', 'corrupt_store'],
  example: {
    params: { memory: 'prefs', where: { contains: 'metric' } },
    result: { commit: COMMIT, steps: 4 },
  },
})

export type BisectParams = z.infer<typeof bisect.params>
export type BisectResult = z.infer<typeof bisect.result>
