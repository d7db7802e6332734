import type { z } from 'zod'

/** Where a value in `params` is wrong, and why, as `invalid_params` tells it. */
export interface Problem {
  /** `items[0].content.type`; empty for `params` itself. */
  path: string
  reason: string
}

type Issue = z.core.$ZodIssue

/** The first thing that is wrong, without a word of the values themselves: they may be memory content. */
export function problemOf(error: z.ZodError): Problem {
  const issue = innermost(error.issues)
  if (issue === undefined) return { path: '', reason: 'is not what this method takes' }
  if (issue.code === 'unrecognized_keys') {
    const path = showPath([...issue.path, issue.keys[0] ?? ''])
    return { path, reason: 'is no field known here; leave it out or correct its name' }
  }
  return { path: showPath(issue.path), reason: reasonOf(issue) }
}

/** A union reports every branch; the one that came furthest says most. */
function innermost(issues: readonly Issue[]): Issue | undefined {
  const [issue] = issues
  if (issue?.code !== 'invalid_union' || issue.errors.length === 0) return issue
  let best: Issue | undefined
  for (const branch of issue.errors) {
    const inner = innermost(branch)
    if (inner === undefined || inner.path.length === 0 || inner.path.length <= (best?.path.length ?? 0))
      continue
    best = inner
  }
  return best === undefined ? issue : ({ ...best, path: [...issue.path, ...best.path] } as Issue)
}

function reasonOf(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined && issue.message.endsWith('undefined')
        ? 'is missing'
        : `must be ${NOUNS[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`
    case 'invalid_union':
      if (issue.discriminator === 'type') return 'must be "text", "json", "bytes" or "image"'
      return issue.message === 'Invalid input' ? 'has none of the forms that are taken here' : issue.message
    case 'too_small':
      return issue.origin === 'array' ? issue.message : `must be at least ${issue.minimum}`
    case 'too_big':
      return `must be at most ${issue.maximum}`
    default:
      return issue.message
  }
}

const NOUNS: Record<string, string> = {
  object: 'an object',
  array: 'an array',
  string: 'a string',
  number: 'a number',
  int: 'a whole number within 2^53',
  boolean: 'true or false',
  null: 'null',
}

/** Show a path the way callers write it: `items[0].content.json.a`, odd keys quoted. */
function showPath(steps: readonly PropertyKey[]): string {
  let path = ''
  for (const step of steps) {
    if (typeof step === 'number') path += `[${step}]`
    else if (/^[A-Za-z_$][\w$-]*$/.test(String(step))) path += path === '' ? String(step) : `.${String(step)}`
    else path += `[${JSON.stringify(String(step))}]`
  }
  return path
}
