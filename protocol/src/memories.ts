import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { memoryName, objectId, pageLimit } from './shapes.ts'
import { NAME_BYTES, text } from './text.ts'

/** List the memories. */
export const memories = defineMethod({
  method: 'memories',
  doc: 'Lists the memories that have been written, by name, a page at a time.',
  verb: 'read',
  params: z.strictObject({
    prefix: text({ max: NAME_BYTES, description: 'Only names that start so.' }).optional(),
    limit: pageLimit(1000),
    after: memoryName
      .optional()
      .meta({ description: 'Go on behind this name: the `next` of the answer before.' }),
  }),
  result: z.looseObject({
    memories: z.array(z.looseObject({ name: memoryName, branch: z.string(), commit: objectId.nullable() })),
    next: memoryName.optional(),
  }),
  errors: [],
  example: {
    params: { prefix: 'pre' },
    result: { memories: [{ name: 'prefs', branch: 'main', commit: COMMIT_ID }] },
  },
})

export type MemoriesParams = z.infer<typeof memories.params>
export type MemoriesResult = z.infer<typeof memories.result>
