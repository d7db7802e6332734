import { deleteBranch } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleDeleteBranch = defineHandler(deleteBranch, 'write', ({ stores, signal }, params) =>
  stores.deleteBranch(params, { signal }),
)
