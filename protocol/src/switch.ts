import { z } from 'zod'
import { BRANCH_LIST, branchList } from './branches.ts'
import { defineMethod } from './method.ts'
import { branchName, memoryName } from './shapes.ts'

/** Makes another branch the default one. */
export const switchMethod = defineMethod({
  method: 'switch',
  doc: 'Makes another branch the default one.',
  verb: 'write',
  params: z.strictObject({ memory: memoryName, branch: branchName }),
  result: branchList,
  errors: ['not_found', 'busy', 'store_io'],
  example: { params: { memory: 'prefs', branch: 'main' }, result: BRANCH_LIST },
})

export type SwitchParams = z.infer<typeof switchMethod.params>
export type SwitchResult = z.infer<typeof switchMethod.result>
