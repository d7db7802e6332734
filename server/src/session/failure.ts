import { randomBytes } from 'node:crypto'
import { MnemError } from '@mnem/core'
import { type ErrorKind, wireError } from '@mnem/protocol'
import type { Log } from '../log.ts'
import { ResponseError } from './rpc.ts'

/** Fail a request with one of the protocol's kinds. */
export function failure(kind: ErrorKind, message: string, facts: object = {}): ResponseError<unknown> {
  const error = wireError(kind, message, facts)
  return new ResponseError(error.code, error.message, error.data)
}

/** The failure of a request that was cancelled. */
export function cancelled(): ResponseError<unknown> {
  return failure('cancelled', 'The request was cancelled before it took effect.')
}

/** What the peer is told of anything that was thrown. A bug gets a reference, which stands in the log with its trace. */
export function toFailure(error: unknown, method: string, log: Log): ResponseError<unknown> {
  if (error instanceof ResponseError) return error
  if (error instanceof MnemError) return failure(error.kind, error.message, error.data)
  const reference = randomBytes(6).toString('hex')
  const stack = error instanceof Error ? error.stack : 'not an Error'
  log.error({ reference, method, stack }, 'a request failed for a reason of our own')
  return failure(
    'internal',
    `Something is wrong in the server itself. Report it with reference ${reference}, which stands in its log.`,
    { reference },
  )
}

/** The kind of a failure, for the log. */
export function kindOf(error: ResponseError<unknown>): string {
  const { kind } = (error.data ?? {}) as { kind?: unknown }
  return typeof kind === 'string' ? kind : String(error.code)
}
