import { readFileSync } from 'node:fs'
import { parse as parseToml, TomlError } from 'smol-toml'
import { UsageError } from '../usage.ts'
import {
  type Config,
  flagOf,
  OPTION_NAMES,
  OPTIONS,
  type OptionName,
  VARIABLE_PREFIX,
  variableOf,
} from './options.ts'
import { type Kind, type Raw, ValueError } from './values.ts'

/** What the command line gave, by option name. */
export type Flags = Readonly<Record<string, string | string[] | boolean | undefined>>

/** The options in force, and for each where it was taken from. */
export interface Configuration {
  config: Config
  /** `--drain`, `MNEM_SERVER_DRAIN`, the name of the file, or `default`. */
  sources: Readonly<Record<OptionName, string>>
  /** Variables that look like ours and are none: a misspelt one is told in the log. */
  strangers: readonly string[]
}

/**
 * Gather the options: the command line before the environment (`MNEM_SERVER_…`) before the file (`--config` or
 * `MNEM_SERVER_CONFIG`) before the defaults. Throws `UsageError`.
 */
export function readConfiguration(flags: Flags, env: NodeJS.ProcessEnv): Configuration {
  const fileName = (flags.config as string | undefined) ?? (env[variableOf('config')] || undefined)
  const file = fileName === undefined ? {} : readFile(fileName)
  const config: Partial<Record<OptionName, unknown>> = {}
  const sources: Partial<Record<OptionName, string>> = {}
  for (const name of OPTION_NAMES) {
    const [raw, source] = pick(name, flags, env, file, fileName)
    const { kind, byDefault } = OPTIONS[name]
    config[name] = raw === undefined ? byDefault : read(kind as Kind<unknown>, raw, source)
    sources[name] = source
  }
  return {
    config: config as Config,
    sources: sources as Record<OptionName, string>,
    strangers: strangersIn(env),
  }
}

function pick(
  name: OptionName,
  flags: Flags,
  env: NodeJS.ProcessEnv,
  file: Readonly<Record<string, Raw>>,
  fileName: string | undefined,
): [raw: Raw | undefined, source: string] {
  const flag = flags[flagOf(name)] as string | string[] | undefined
  if (flag !== undefined) return [flag, `--${flagOf(name)}`]
  const variable = variableOf(name)
  // Set to nothing is how a variable is taken back where it can't be unset.
  if (env[variable]) return [env[variable], variable]
  if (file[name] !== undefined) return [file[name], `${fileName}: ${name}`]
  return [undefined, 'default']
}

function read(kind: Kind<unknown>, raw: Raw, source: string): unknown {
  try {
    return kind.read(raw)
  } catch (error) {
    if (!(error instanceof ValueError)) throw error
    throw new UsageError(`${source} is ${JSON.stringify(raw)}, which ${error.message}.`)
  }
}

function readFile(name: string): Readonly<Record<string, Raw>> {
  const values = parse(name, readText(name))
  for (const [key, value] of Object.entries(values)) {
    if (!(key in OPTIONS)) {
      const near = OPTION_NAMES.includes(key.replaceAll('-', '_') as OptionName) ? ' (with underscores)' : ''
      throw new UsageError(
        `${name} sets ${JSON.stringify(key)}, which is no option${near}; see mnem-sidecar serve --help.`,
      )
    }
    const isPlain = ['string', 'number', 'boolean'].includes(typeof value)
    if (!isPlain && !(Array.isArray(value) && value.every((each) => typeof each === 'string')))
      throw new UsageError(`${name}: ${key} must be a text, a number, or a list of texts.`)
  }
  return values as Record<string, Raw>
}

function readText(name: string): string {
  try {
    return readFileSync(name, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(
      `The configuration file ${name} can't be read (${code}); correct its name or its permissions.`,
    )
  }
}

function parse(name: string, text: string): Record<string, unknown> {
  let values: unknown
  try {
    values = name.endsWith('.json') ? JSON.parse(text) : parseToml(text)
  } catch (error) {
    // Its message quotes the text around the fault, which may hold what should not be shown.
    const where = error instanceof TomlError ? ` at line ${error.line}, column ${error.column}` : ''
    throw new UsageError(
      `The configuration file ${name} is no ${name.endsWith('.json') ? 'JSON' : 'TOML'}${where}; correct it.`,
    )
  }
  if (typeof values !== 'object' || values === null || Array.isArray(values))
    throw new UsageError(`The configuration file ${name} must hold one object with the options.`)
  return values as Record<string, unknown>
}

function strangersIn(env: NodeJS.ProcessEnv): string[] {
  const known = new Set([...OPTION_NAMES, 'config'].map(variableOf))
  return Object.keys(env).filter((name) => name.startsWith(VARIABLE_PREFIX) && !known.has(name))
}
