import { z } from 'zod'
import { COMMIT, PARENT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { at, branch, commit, commitTime, memoryName, objectId, pageLimit } from './shapes.ts'

/** List commits. */
export const log = defineMethod({
  method: 'log',
  doc: 'Lists commits, children before parents, a page at a time.',
  verb: 'read',
  params: z.strictObject({
    memory: memoryName,
    branch,
    at: at.optional().meta({ description: 'Where to begin; default the head.' }),
    since: commitTime.optional().meta({ description: 'Unix time in ms: only commits not older.' }),
    limit: pageLimit(100),
    after: objectId
      .optional()
      .meta({ description: 'Go on behind this commit: the `next` of the answer before.' }),
    first_parent: z.boolean().optional().meta({ description: 'Follow first parents only.' }),
  }),
  result: z.looseObject({
    commits: z.array(commit),
    next: objectId.optional().meta({ description: 'There is more: send it as `after`.' }),
  }),
  errors: ['not_found', 'invalid_ref', 'corrupt_store'],
  example: { params: { memory: 'prefs', limit: 1 }, result: { commits: [COMMIT], next: PARENT_ID } },
})

export type LogParams = z.infer<typeof log.params>
export type LogResult = z.infer<typeof log.result>
