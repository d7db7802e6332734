import { z } from 'zod'

/** As much of JSON Schema as the documents made from it look at. */
export interface JsonSchema {
  type?: string
  description?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  additionalProperties?: JsonSchema | boolean
  minimum?: number
  $ref?: string
  $defs?: Record<string, JsonSchema>
  $schema?: string
}

/** Where the shapes that methods share stand in an OpenRPC document. */
const SHARED = '#/components/schemas/'

/**
 * JSON Schema of what stands on the wire; shapes with an id are put into `shared`, once each, and referred to there.
 */
export function toJsonSchema(schema: z.ZodType, shared: Map<string, JsonSchema>): JsonSchema {
  const made = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      // Text that stays as it is: any JSON object on the wire.
      if (zodSchema._zod.def.type === 'custom') jsonSchema.type = 'object'
    },
  })
  const { $schema: _, $defs = {}, ...own } = pointToShared(made) as JsonSchema
  for (const [name, definition] of Object.entries($defs)) {
    const { id: _, ...shape } = definition as JsonSchema & { id?: string }
    const known = shared.get(name)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(shape)) {
      throw new Error(`two different shapes are called ${name}`)
    }
    shared.set(name, shape)
  }
  return own
}

function pointToShared(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pointToShared)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      key === '$ref' && typeof member === 'string'
        ? [key, member.replace('#/$defs/', SHARED)]
        : [key, pointToShared(member)],
    ),
  )
}

/** Name of the shape that a reference points to. */
export function sharedName(ref: string): string {
  return ref.slice(SHARED.length)
}
