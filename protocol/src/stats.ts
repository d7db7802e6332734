import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { count, memoryName, objectId } from './shapes.ts'

/** Figures of the whole store directory. */
export const storeStats = z
  .looseObject({
    memories: count,
    commits: count,
    bytes: count.meta({ description: "Bytes of the store's files on disk." }),
    schema_version: count,
  })
  .meta({ id: 'StoreStats', description: 'Figures of the whole store directory.' })

/** Figures of one memory. */
export const memoryStats = z
  .looseObject({
    memory: memoryName,
    branch: z.string(),
    commit: objectId.nullable(),
    commits: count,
    items: count,
    epoch: count,
  })
  .meta({ id: 'MemoryStats', description: 'Figures of one memory.' })

/** Count what is there. */
export const stats = defineMethod({
  method: 'stats',
  doc: 'Gives the figures of one memory, or without `memory` of the whole store directory.',
  verb: 'read',
  params: z.strictObject({ memory: memoryName.optional() }).optional(),
  result: z.union([memoryStats, storeStats]),
  errors: ['corrupt_store'],
  example: {
    params: { memory: 'prefs' },
    result: { memory: 'prefs', branch: 'main', commit: COMMIT_ID, commits: 9, items: 8, epoch: 0 },
  },
})

export type StatsParams = z.infer<typeof stats.params>
export type StatsResult = z.infer<typeof stats.result>
