import { isAbsolute, join, normalize, sep } from 'node:path'
import { failure } from './failure.ts'

/** Where a backup goes that a client asks for by this name. Throws what the client is told. */
export type BackupPath = (to: string) => string

/** For the client that started the daemon: any place, said so that no working directory counts. */
export const anywhere: BackupPath = (to) => {
  if (isAbsolute(to) && !to.includes('\0')) return normalize(to)
  throw refused('must be an absolute path')
}

/** For clients of a server: below one directory, if it has one. */
export function below(dir: string | undefined): BackupPath {
  return (to) => {
    if (dir === undefined)
      throw failure('unauthorized', 'This server takes no backups; start it with --backup-dir DIR.')
    const path = normalize(to)
    if (isAbsolute(to) || to.includes('\0') || path === '.' || path.split(sep).includes('..'))
      throw refused('must be a path below the backup directory of the server')
    return join(dir, path)
  }
}

function refused(reason: string) {
  return failure('invalid_params', `to: ${reason}`, { path: 'to', reason })
}
