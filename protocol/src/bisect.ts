import { z } from 'zod'
import { COMMIT } from './examples.ts'
import { defineMethod } from './method.ts'
import { at, branch, commit, count, itemId, memoryName } from './shapes.ts'
import { text } from './text.ts'

/** Find where something began. */
export const bisect = defineMethod({
  method: 'bisect',
  doc: 'Finds the first commit on the first-parent chain where a condition holds, which must hold from there on; or with `probe` names one commit, for a client that looks at states itself.',
  verb: 'read',
  params: z.strictObject({
    memory: memoryName,
    branch,
    good: at.optional().meta({ description: 'Where it does not hold yet; default before the first commit.' }),
    bad: at.optional().meta({ description: 'Where it holds; default the head.' }),
    where: z
      .union([
        z.strictObject({
          contains: text({
            min: 1,
            max: 65_536,
            description: 'A live item has this text in its strings or keys.',
          }),
        }),
        z.strictObject({ item: itemId.meta({ description: 'This item is live.' }) }),
        z.strictObject({
          count_at_least: count.meta({ description: 'At least so many items are live.' }),
        }),
      ])
      .optional(),
    probe: count.optional().meta({
      description:
        'Instead of `where`: name this one of the commits behind `good` up to `bad`, oldest first, counted from 0.',
    }),
  }),
  result: z.looseObject({
    commit,
    steps: count
      .optional()
      .meta({ description: 'With `where`: states between `good` and `bad` that a search looks at.' }),
    count: count.optional().meta({ description: 'With `probe`: commits behind `good` up to `bad`.' }),
  }),
  errors: ['not_found', 'invalid_ref', 'corrupt_store'],
  example: {
    params: { memory: 'prefs', where: { contains: 'metric' } },
    result: { commit: COMMIT, steps: 4 },
  },
})

export type BisectParams = z.infer<typeof bisect.params>
export type BisectResult = z.infer<typeof bisect.result>
