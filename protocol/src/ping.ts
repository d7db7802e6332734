import { z } from 'zod'
import { defineMethod } from './method.ts'
import { commitTime, noParams } from './shapes.ts'

/** See that the server answers. */
export const ping = defineMethod({
  method: 'ping',
  doc: "Answers at once with the server's clock.",
  verb: 'read',
  params: noParams.optional(),
  result: z.looseObject({ time: commitTime }),
  errors: [],
  example: { params: {}, result: { time: 1_760_000_000_000 } },
})

export type PingParams = z.infer<typeof ping.params>
export type PingResult = z.infer<typeof ping.result>
