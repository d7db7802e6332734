import { ERRORS, GROUPS, type Method, type MethodGroup } from '../src/index.ts'
import { type JsonSchema, sharedName, toJsonSchema } from './json-schema.ts'
import { PROSE } from './prose.ts'

/** `docs/protocol.md`, as text. */
export function renderMarkdown(): string {
  const shared = new Map<string, JsonSchema>()
  const methods = GROUPS.map((group) => renderGroup(group, shared))
  return `${[PROSE.session, renderOverview(), PROSE.shapes, renderShapes(shared), ...methods, renderErrors()].join('\n\n')}\n`
}

function renderOverview(): string {
  const rows = GROUPS.flatMap(({ methods, served, capability }) =>
    methods.map(({ method, doc }) => [link(method), served ? 'yes' : 'not yet', capability ?? '', doc]),
  )
  return `## Methods at a glance\n\n${table(['Method', 'Served', 'Capability', 'What it does'], rows)}`
}

function renderGroup({ title, methods, served }: MethodGroup, shared: Map<string, JsonSchema>): string {
  const note = served
    ? ''
    : '\n\n**Not served yet**: this version answers `method_not_found`. The shapes are what a later version will serve.'
  return `## ${title}${note}\n\n${methods.map((method) => renderMethod(method, shared)).join('\n\n')}`
}

function renderMethod(method: Method, shared: Map<string, JsonSchema>): string {
  const { doc, verb, result, errors, example } = method
  const needs = verb === null ? '' : ` Needs \`${verb}\`.`
  const parts = [`### \`${method.method}\``, `${doc}${needs}`]
  const params = toJsonSchema(method.params, shared)
  if (Object.keys(params.properties ?? {}).length > 0) parts.push(`Params:\n\n${fields(params)}`)
  else parts.push('Params: none.')
  if (result !== null) parts.push(renderResult(toJsonSchema(result, shared)))
  if (errors.length > 0) parts.push(`Errors of its own: ${errors.map((kind) => `\`${kind}\``).join(', ')}.`)
  parts.push(`Example:\n\n${json({ method: method.method, params: example.params })}`)
  if (result !== null) parts.push(`answers\n\n${json(example.result)}`)
  return parts.join('\n\n')
}

function renderResult(result: JsonSchema): string {
  if (result.$ref !== undefined) return `Result: ${typeOf(result)}.`
  if (result.properties === undefined) return `Result: ${typeOf(result)}.`
  return `Result:\n\n${fields(result)}`
}

function renderShapes(shared: Map<string, JsonSchema>): string {
  // Collects what the methods below refer to, so that shapes can stand before them.
  for (const { method } of GROUPS.flatMap(({ methods }) => methods.map((method) => ({ method })))) {
    toJsonSchema(method.params, shared)
    if (method.result !== null) toJsonSchema(method.result, shared)
  }
  return [...shared]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => `### ${name}\n\n${schema.description ?? ''}\n\n${shapeBody(schema)}`)
    .join('\n\n')
}

function shapeBody(schema: JsonSchema): string {
  const forms = schema.oneOf ?? schema.anyOf
  if (forms === undefined) return fields(schema)
  return forms.map((form) => `- ${inline(form)}`).join('\n')
}

/** An object in one line: `{"type": "text", "text": string}`. */
function inline(schema: JsonSchema): string {
  const members = Object.entries(schema.properties ?? {}).map(
    ([name, member]) =>
      `"${name}": ${member.const === undefined ? plainType(member) : JSON.stringify(member.const)}`,
  )
  return `\`{${members.join(', ')}}\``
}

function fields({ properties = {}, required = [] }: JsonSchema): string {
  const rows = Object.entries(properties).map(([name, schema]) => [
    `\`${name}\`${required.includes(name) ? '' : '?'}`,
    typeOf(schema),
    schema.description ?? '',
  ])
  return table(['Field', 'Type', 'Meaning'], rows)
}

function typeOf(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return link(sharedName(schema.$ref))
  const forms = schema.anyOf ?? schema.oneOf
  if (forms !== undefined) return forms.map(typeOf).join(' or ')
  if (schema.type === 'array')
    return `array of ${schema.items === undefined ? 'anything' : typeOf(schema.items)}`
  if (schema.properties !== undefined) return inline(schema)
  return plainType(schema)
}

function plainType(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return sharedName(schema.$ref)
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' or ')
  const forms = schema.anyOf ?? schema.oneOf
  if (forms !== undefined) return forms.map(plainType).join(' or ')
  return schema.type ?? 'anything'
}

function renderErrors(): string {
  const rows = Object.entries(ERRORS).map(([kind, { code, meaning, data, retryable }]) => [
    `\`${kind}\``,
    String(code),
    `${meaning}${retryable ? ' Retryable.' : ''}`,
    data.map((name) => `\`${name}\``).join(', '),
  ])
  return `${PROSE.errors}\n\n${table(['Kind', 'Code', 'Meaning', 'Further `data`'], rows)}`
}

function link(name: string): string {
  return `[\`${name}\`](#${name.toLowerCase().replace(/[^\w-]/g, '')})`
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function json(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``
}
