import {
  changeTokenFile,
  checkAuthor,
  checkRule,
  readTokenFile,
  type TokenEntry,
  VERBS,
} from '../access/token-file.ts'
import { hashToken, newToken } from '../access/tokens.ts'
import { UsageError } from '../usage.ts'
import { orComplain } from './ending.ts'

export interface TokenOptions {
  file: string
  name?: string | undefined
  memory?: string[] | undefined
  verb?: string[] | undefined
  author?: string | undefined
}

/** `mnem-sidecar token new|list|revoke`. */
export async function runToken(action: string, options: TokenOptions): Promise<void> {
  try {
    if (action === 'new') await create(options)
    else if (action === 'list') list(options)
    else await revoke(options)
  } catch (error) {
    orComplain(error)
  }
}

/** Make a token. It is printed alone on the last line, and kept nowhere. */
async function create({ file, memory = [], verb = [], author, ...rest }: TokenOptions): Promise<void> {
  const name = nameOf(rest)
  const verbs = VERBS.filter((known) => verb.includes(known))
  const stranger = verb.find((given) => !(VERBS as readonly string[]).includes(given))
  if (stranger !== undefined)
    throw new UsageError(`--verb is ${JSON.stringify(stranger)}; give one of ${VERBS.join(', ')}.`)
  if ((memory.length === 0) !== (verbs.length === 0))
    throw new UsageError(
      'Give both --memory and --verb; or neither, for a token that can only ask whether the server is well.',
    )
  for (const rule of memory) checkRule(rule, '--memory')
  const token = newToken()
  const entry: TokenEntry = {
    name,
    sha256: hashToken(token).toString('hex'),
    memories: memory,
    verbs,
    ...(author === undefined ? {} : { author: checkAuthor(author, '--author') }),
    created: new Date().toISOString(),
  }
  await changeTokenFile(file, (entries) => {
    if (entries.some((other) => other.name === name))
      throw new UsageError(
        `${file} has a token ${JSON.stringify(name)} already; give another --name, or revoke that one.`,
      )
    return [...entries, entry]
  })
  process.stdout.write(
    `Token ${JSON.stringify(name)} for ${describe(entry)}. It is shown once and kept nowhere:\n${token}\n`,
  )
}

function list({ file }: TokenOptions): void {
  const lines = readTokenFile(file).map((entry) => `${entry.name}\t${describe(entry)}\n`)
  process.stdout.write(lines.join(''))
}

async function revoke({ file, ...rest }: TokenOptions): Promise<void> {
  const name = nameOf(rest)
  await changeTokenFile(file, (entries) => {
    const left = entries.filter((entry) => entry.name !== name)
    if (left.length === entries.length)
      throw new UsageError(`${file} has no token ${JSON.stringify(name)}; see mnem-sidecar token list.`)
    return left
  })
  process.stdout.write(`Token ${JSON.stringify(name)} is revoked; servers notice within a second or two.\n`)
}

function nameOf({ name }: { name?: string | undefined }): string {
  if (name === undefined || name === '' || /\p{Cc}/u.test(name))
    throw new UsageError('Give the token a name, so that it can be found again: --name NAME.')
  return name
}

function describe({ verbs, memories, author }: TokenEntry): string {
  if (verbs.length === 0) return 'ping only'
  const as = author === undefined ? '' : `, commits as ${JSON.stringify(author)}`
  return `${verbs.join('+')} on ${memories.map((rule) => JSON.stringify(rule)).join(' ')}${as}`
}
