import { deleteMemory } from '@mnem/protocol'
import { failure } from '../session/failure.ts'
import { defineHandler } from './handler.ts'

export const handleDeleteMemory = defineHandler(
  deleteMemory,
  'write',
  async ({ stores, signal }, { memory, confirm }) => {
    if (confirm !== memory)
      throw failure('invalid_params', 'confirm: must be the name of the memory again', {
        path: 'confirm',
        reason: 'must be the name of the memory again',
      })
    await stores.deleteMemory(memory, { signal })
    return null
  },
)
