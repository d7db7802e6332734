import { z } from 'zod'
import { defineMethod } from './method.ts'

/** How far a long request has come. */
export const progress = defineMethod({
  method: '$/progress',
  doc: 'Notification from the server about a request that carried `progress_token`.',
  verb: null,
  params: z.looseObject({
    token: z.union([z.string(), z.int()]),
    value: z.looseObject({ done: z.number(), total: z.number().optional(), unit: z.string() }),
  }),
  result: null,
  errors: [],
  example: { params: { token: 1, value: { done: 500, total: 1000, unit: 'commits' } } },
})
