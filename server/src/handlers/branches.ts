import { branches } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleBranches = defineHandler(branches, 'read', ({ stores }, { memory }) =>
  stores.branches(memory),
)
