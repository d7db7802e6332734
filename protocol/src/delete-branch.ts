import { z } from 'zod'
import { BRANCH_LIST, branchList } from './branches.ts'
import { defineMethod } from './method.ts'
import { branchName, memoryName } from './shapes.ts'

/** Deletes a branch that is not the default one; its commits stay reachable by id. */
export const deleteBranch = defineMethod({
  method: 'delete_branch',
  doc: 'Deletes a branch that is not the default one; its commits stay reachable by id.',
  verb: 'write',
  params: z.strictObject({ memory: memoryName, name: branchName }),
  result: branchList,
  errors: ['not_found', 'conflict', 'busy', 'store_io'],
  example: { params: { memory: 'prefs', name: 'trial' }, result: BRANCH_LIST },
})

export type DeleteBranchParams = z.infer<typeof deleteBranch.params>
export type DeleteBranchResult = z.infer<typeof deleteBranch.result>
