import { z } from 'zod'
import { defineMethod } from './method.ts'
import { commitTime, count, itemId, memoryName, objectId } from './shapes.ts'

/** Hash everything again. */
export const verify = defineMethod({
  method: 'verify',
  doc: 'Derives every id of a memory again and names what does not fit; `repair` rebuilds what is derived.',
  verb: 'read',
  params: z.strictObject({
    memory: memoryName,
    repair: z
      .boolean()
      .optional()
      .meta({ description: 'Make what is derived from the commits anew; needs `admin`.' }),
  }),
  result: z.looseObject({
    ok: z.boolean(),
    objects: count,
    problems: z.array(z.looseObject({ object: z.string(), problem: z.string() })),
    redacted: z.array(itemId).meta({ description: 'Items whose content was purged.' }),
    purged: z
      .array(
        z.looseObject({
          object: objectId,
          id: itemId,
          author: z.string(),
          time: commitTime,
          reason: z.string(),
        }),
      )
      .meta({ description: 'Who purged which object, when and why.' }),
  }),
  errors: ['busy', 'store_io', 'cancelled'],
  example: {
    params: { memory: 'prefs' },
    result: { ok: true, objects: 412, problems: [], redacted: [], purged: [] },
  },
})

export type VerifyParams = z.infer<typeof verify.params>
export type VerifyResult = z.infer<typeof verify.result>
