import { z } from 'zod'
import { defineMethod } from './method.ts'
import { text } from './text.ts'

/** Version of the protocol that this package describes. */
export const PROTOCOL_VERSION = 1

const label = (what: string) => text({ min: 1, max: 255, description: what })

/** What a server accepts at most. */
export const limits = z
  .looseObject({
    frame_bytes: z.int().meta({ description: 'Bytes of a body, either way.' }),
    item_bytes: z.int().meta({ description: 'Bytes of one item as stored.' }),
    items_per_add: z.int(),
    name_bytes: z.int().meta({ description: 'UTF-8 bytes of a name.' }),
    json_depth: z.int().meta({ description: 'Levels of arrays and objects in one JSON value.' }),
  })
  .meta({ id: 'Limits', description: 'What a server accepts at most.' })

export type Limits = z.infer<typeof limits>

/** The first request of a connection. */
export const initialize = defineMethod({
  method: 'initialize',
  doc: 'Agrees on the version of the protocol and tells the limits; must be the first request of a connection.',
  verb: null,
  params: z.strictObject({
    protocol: z.int().meta({ description: 'Version of the protocol that the client speaks: 1.' }),
    client: z.strictObject({ name: label('Name of the client.'), version: label('Version of the client.') }),
    token: text({ max: 65_536, description: 'Token, where the endpoint asks for one.' }).optional(),
  }),
  result: z.looseObject({
    protocol: z.int(),
    server: z.looseObject({ name: z.string(), version: z.string() }),
    capabilities: z
      .array(z.string())
      .meta({ description: 'Groups of methods that this server serves in full.' }),
    limits,
  }),
  errors: ['unsupported_protocol', 'unauthorized'],
  example: {
    params: { protocol: 1, client: { name: 'mnem-autogen', version: '0.1.0' } },
    result: {
      protocol: 1,
      server: { name: 'mnem-sidecar', version: '0.1.0' },
      capabilities: ['memory', 'log'],
      limits: {
        frame_bytes: 33_554_432,
        item_bytes: 8_388_608,
        items_per_add: 10_000,
        name_bytes: 255,
        json_depth: 100,
      },
    },
  },
})

export type InitializeParams = z.infer<typeof initialize.params>
export type InitializeResult = z.infer<typeof initialize.result>
