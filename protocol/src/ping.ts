import { z } from 'zod'
import { defineMethod } from './method.ts'
import { commitTime, noParams } from './shapes.ts'

/** See that the server answers. */
export const ping = defineMethod({
  method: 'ping',
  doc: "Answers at once with the server's clock, and whether the store can be written to.",
  verb: null,
  params: noParams.optional(),
  result: z.looseObject({
    time: commitTime,
    ready: z.boolean().meta({ description: 'Whether the store can be written to.' }),
    reason: z.string().optional().meta({ description: 'Where it is not ready: why, and what to do.' }),
  }),
  errors: [],
  example: { params: {}, result: { time: 1_760_000_000_000, ready: true } },
})

export type PingParams = z.infer<typeof ping.params>
export type PingResult = z.infer<typeof ping.result>
