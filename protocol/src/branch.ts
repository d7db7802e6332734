import { z } from 'zod'
import { BRANCH_LIST, branchList } from './branches.ts'
import { defineMethod } from './method.ts'
import { at, branchName, memoryName } from './shapes.ts'

/** Makes a branch at the head or at `at`. */
export const branchMethod = defineMethod({
  method: 'branch',
  doc: 'Makes a branch at the head or at `at`.',
  verb: 'write',
  params: z.strictObject({ memory: memoryName, name: branchName, at: at.optional() }),
  result: branchList,
  errors: ['invalid_ref', 'conflict', 'busy', 'store_io'],
  example: { params: { memory: 'prefs', name: 'trial' }, result: BRANCH_LIST },
})

export type BranchParams = z.infer<typeof branchMethod.params>
export type BranchResult = z.infer<typeof branchMethod.result>
