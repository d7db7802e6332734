import { z } from 'zod'
import { defineMethod } from './method.ts'
import { count } from './shapes.ts'
import { text } from './text.ts'

/** Copy the store directory. */
export const backup = defineMethod({
  method: 'backup',
  doc: 'Copies the whole store directory; on stdio and the command line, elsewhere below `--backup-dir`.',
  verb: 'admin',
  params: z.strictObject({
    to: text({ min: 1, max: 4096, description: 'Directory to write; must not exist.' }),
  }),
  result: z.looseObject({ to: z.string(), bytes: count }),
  errors: ['store_io', 'unauthorized', 'cancelled'],
  example: { params: { to: '/backups/monday' }, result: { to: '/backups/monday', bytes: 4_194_304 } },
})

export type BackupParams = z.infer<typeof backup.params>
export type BackupResult = z.infer<typeof backup.result>
