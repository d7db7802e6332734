/** What went wrong, as callers decide on it. The wire sends the same words. */
export type ErrorKind =
  | 'invalid_params'
  | 'not_found'
  | 'invalid_ref'
  | 'conflict'
  | 'busy'
  | 'store_io'
  | 'corrupt_store'
  | 'too_large'
  | 'cancelled'
  | 'shutting_down'

/** Facts beside the sentence; which ones a kind carries is listed in docs/protocol.md. */
export interface ErrorData {
  path?: string
  reason?: string
  candidates?: string[]
  object?: string
  problem?: string
  limit?: number
  actual?: number
}

const RETRYABLE: ReadonlySet<ErrorKind> = new Set(['busy', 'shutting_down'])

/**
 * Every failure that a caller can do something about. `message` is a sentence that says what to do; `kind` is what
 * programs decide on. Messages never hold memory content.
 */
export class MnemError extends Error {
  override readonly name = 'MnemError'
  readonly kind: ErrorKind
  readonly data: ErrorData

  constructor(kind: ErrorKind, message: string, data: ErrorData = {}, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
    this.data = data
  }

  /** Whether the same request may succeed when sent again unchanged. */
  get retryable(): boolean {
    return RETRYABLE.has(this.kind)
  }
}

/** A value in a request is not one that can be stored: `path` says where it is. */
export function invalidParams(path: string, reason: string): MnemError {
  return new MnemError('invalid_params', `${path === '' ? 'The request' : path}: ${reason}`, { path, reason })
}
