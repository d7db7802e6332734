import manifest from '../package.json' with { type: 'json' }
import { ERRORS, GROUPS, type Method } from '../src/index.ts'
import { type JsonSchema, toJsonSchema } from './json-schema.ts'

/** The OpenRPC document of the protocol, as text. */
export function renderOpenrpc(): string {
  const shared = new Map<string, JsonSchema>()
  const methods = GROUPS.flatMap(({ methods, served, capability }) =>
    methods.map((method) => ({
      ...describe(method, shared),
      'x-served': served,
      ...(capability === null ? {} : { 'x-capability': capability }),
    })),
  )
  const document = {
    openrpc: '1.3.2',
    info: {
      title: 'mnem-sidecar',
      version: manifest.version,
      description: 'Version-controlled memories for AI agents. JSON-RPC 2.0 in frames with Content-Length.',
      license: { name: 'Apache-2.0' },
    },
    methods,
    components: {
      schemas: Object.fromEntries([...shared].sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function describe(method: Method, shared: Map<string, JsonSchema>) {
  const { properties = {}, required = [] } = toJsonSchema(method.params, shared)
  return {
    name: method.method,
    summary: method.doc,
    paramStructure: 'by-name',
    params: Object.entries(properties).map(([name, schema]) => ({
      name,
      required: required.includes(name),
      ...(schema.description === undefined ? {} : { description: schema.description }),
      schema,
    })),
    ...(method.result === null
      ? {}
      : { result: { name: 'result', schema: toJsonSchema(method.result, shared) } }),
    errors: method.errors.map((kind) => ({
      code: ERRORS[kind].code,
      message: ERRORS[kind].meaning,
      data: { kind },
    })),
    examples: [exampleOf(method)],
    ...(method.verb === null ? {} : { 'x-verb': method.verb }),
  }
}

function exampleOf({ method, example, result }: Method) {
  const params = Object.entries(example.params as object).map(([name, value]) => ({ name, value }))
  return {
    name: method,
    params,
    ...(result === null ? {} : { result: { name: 'result', value: example.result } }),
  }
}
