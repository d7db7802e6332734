import type { Stores } from '@mnem/core'
import type { Method } from '@mnem/protocol'
import type { z } from 'zod'
import type { Access } from '../access/access.ts'
import type { Readiness } from '../ops/health.ts'
import type { BackupPath } from '../session/backup-path.ts'
import type { Imports } from '../session/imports.ts'

/** What handlers need of the store; the tests stand in for it. */
export type StoresApi = Pick<Stores, keyof Stores>

export interface HandlerContext {
  stores: StoresApi
  /** What this connection may do; that it may ask this at all has been checked. */
  access: Access
  /** Where a backup goes. */
  backupPath: BackupPath
  /** The imports that this connection has begun. */
  imports: Imports
  /** Whether the store can be written to. */
  readiness: () => Readiness
  /** Aborted when the peer cancels. */
  signal: AbortSignal
}

/**
 * How a handler is ordered among the requests of its connection: writes and reads of one memory in the order in which
 * they came (order.ts), `now` without waiting for anything, `long` without order, a few at once on the whole server.
 */
export type Turn = 'write' | 'read' | 'now' | 'long'

export interface Handler {
  readonly method: Method
  readonly turn: Turn
  readonly run: (context: HandlerContext, params: never) => Promise<unknown>
}

/** A handler of one method; its params are what the method's schema gives. */
export function defineHandler<Params extends z.ZodType>(
  method: Method<string, Params>,
  turn: Turn,
  run: (context: HandlerContext, params: z.infer<Params>) => Promise<unknown>,
): Handler {
  return { method, turn, run }
}
