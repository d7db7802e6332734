import { importMethod } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleImport = defineHandler(
  importMethod,
  'write',
  async ({ imports }, { memory, part, text, more }) => ({
    part,
    ...(await imports.take(memory, part, text, more !== true)),
  }),
)
