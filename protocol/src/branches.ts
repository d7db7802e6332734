import { z } from 'zod'
import { COMMIT_ID } from './examples.ts'
import { defineMethod } from './method.ts'
import { memoryName, objectId } from './shapes.ts'

/** The branches of a memory: what `branches` and the methods that change them answer. */
export const branchList = z
  .looseObject({
    branches: z.array(z.looseObject({ name: z.string(), commit: objectId, default: z.boolean() })),
  })
  .meta({ id: 'BranchList', description: 'The branches of a memory, with heads and which is the default.' })

/** What an example's memory has. */
export const BRANCH_LIST = { branches: [{ name: 'main', commit: COMMIT_ID, default: true }] }

/** List branches. */
export const branches = defineMethod({
  method: 'branches',
  doc: 'Lists the branches of a memory with their heads.',
  verb: 'read',
  params: z.strictObject({ memory: memoryName }),
  result: branchList,
  errors: ['corrupt_store'],
  example: { params: { memory: 'prefs' }, result: BRANCH_LIST },
})

export type BranchesParams = z.infer<typeof branches.params>
export type BranchesResult = z.infer<typeof branches.result>
