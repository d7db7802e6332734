import manifest from '../package.json' with { type: 'json' }

/** Version of this server. */
export const VERSION: string = manifest.version
