import { importMethod } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleImport = defineHandler(
  importMethod,
  'write',
  async ({ imports }, { memory, part, text, more, force }) => ({
    part,
    ...(await imports.take(memory, { part, text, force, isLast: more !== true })),
  }),
)
