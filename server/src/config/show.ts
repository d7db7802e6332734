import { stringify } from 'smol-toml'
import { OPTION_NAMES, OPTIONS } from './options.ts'
import type { Configuration } from './read.ts'
import type { Kind } from './values.ts'

/** The options in force as a configuration file, each with where it was taken from; what is off is a comment. */
export function showConfiguration({ config, sources, strangers }: Configuration): string {
  const lines = OPTION_NAMES.map((name) => {
    const value = config[name]
    if (value === undefined) return `# ${name} is not set`
    const shown = (OPTIONS[name].kind as Kind<unknown>).show(value)
    const masked = typeof shown === 'string' ? maskSecrets(shown) : shown
    return `${stringify({ [name]: masked }).trim()} # ${sources[name]}`
  })
  // They do nothing: most likely a name was misspelt.
  const ignored = strangers.map((name) => `# ${name} is no option of serve`)
  return `${[...lines, ...ignored].join('\n')}\n`
}

/** Passwords in addresses, such as `postgres://user:password@host`, are nobody's to see. */
export function maskSecrets(text: string): string {
  return text.replace(/^([a-z][a-z\d+.-]*:\/\/[^/?#:@]*):[^@/?#]*@/i, '$1:****@')
}
