import { z } from 'zod'
import { defineMethod } from './method.ts'
import { memoryName, nothing } from './shapes.ts'

/** Delete a memory with its history. */
export const deleteMemory = defineMethod({
  method: 'delete_memory',
  doc: 'Deletes a memory with all of its history.',
  verb: 'admin',
  params: z.strictObject({
    memory: memoryName,
    confirm: memoryName.meta({ description: 'The name again.' }),
  }),
  result: nothing,
  errors: ['not_found', 'busy', 'store_io'],
  example: { params: { memory: 'prefs', confirm: 'prefs' }, result: null },
})

export type DeleteMemoryParams = z.infer<typeof deleteMemory.params>
export type DeleteMemoryResult = z.infer<typeof deleteMemory.result>
