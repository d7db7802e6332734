import { backup } from '@mnem/protocol'
import { coversAll } from '../access/access.ts'
import { failure } from '../session/failure.ts'
import { defineHandler } from './handler.ts'

/** Holds nothing up: it copies what is there at one moment, and others go on. */
export const handleBackup = defineHandler(backup, 'long', async ({ stores, access, backupPath }, { to }) => {
  if (!coversAll(access))
    throw failure(
      'unauthorized',
      'This token does not cover every memory; use one that was made with --memory "*".',
    )
  const dir = backupPath(to)
  return { to: dir, bytes: await stores.backup(dir) }
})
