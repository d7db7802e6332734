import type { z } from 'zod'
import { defineMethod } from './method.ts'
import { noParams, nothing } from './shapes.ts'

/** Ask the server to finish what it took. */
export const shutdown = defineMethod({
  method: 'shutdown',
  doc: 'Answers once everything taken before is durable and answered; later requests are refused, then send `exit`.',
  verb: null,
  params: noParams.optional(),
  result: nothing,
  errors: [],
  example: { params: {}, result: null },
})

export type ShutdownParams = z.infer<typeof shutdown.params>
export type ShutdownResult = z.infer<typeof shutdown.result>
