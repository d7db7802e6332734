import { z } from 'zod'
import { defineMethod } from './method.ts'
import { count } from './shapes.ts'
import { text } from './text.ts'

/** Copy the store directory. */
export const backup = defineMethod({
  method: 'backup',
  doc: 'Copies the whole store into another directory, which opens as a store, while it goes on. Its tokens must cover every memory.',
  verb: 'admin',
  params: z.strictObject({
    to: text({
      min: 1,
      max: 4096,
      description:
        'Directory to write into, without a store: on stdio an absolute path, from a server one below its `--backup-dir`.',
    }),
  }),
  result: z.looseObject({ to: z.string(), bytes: count }),
  errors: ['conflict', 'store_io', 'unauthorized'],
  example: { params: { to: '/backups/monday' }, result: { to: '/backups/monday', bytes: 4_194_304 } },
})

export type BackupParams = z.infer<typeof backup.params>
export type BackupResult = z.infer<typeof backup.result>
