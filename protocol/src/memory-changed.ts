import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { count, memoryName, objectId } from './shapes.ts'

/** A memory that was subscribed to has changed. */
export const memoryChanged = defineMethod({
  method: 'memory_changed',
  doc: 'Notification from the server: a memory that this connection subscribed to has a new head.',
  verb: null,
  params: z.looseObject({ memory: memoryName, branch: z.string(), commit: objectId.nullable(), count }),
  result: null,
  errors: [],
  example: { params: { memory: 'prefs', branch: 'main', commit: COMMIT_ID, count: 8 } },
})
