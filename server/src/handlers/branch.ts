import { branchMethod } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleBranch = defineHandler(branchMethod, 'write', ({ stores, signal }, params) =>
  stores.branch(params, { signal }),
)
