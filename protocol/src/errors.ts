/** What can go wrong (protocol.md, Errors). Clients decide on `kind`; the code is JSON-RPC's way to say the same. */

interface ErrorEntry {
  code: number
  retryable: boolean
  /** What it means. */
  meaning: string
  /** Members of `data` beside `kind` and `retryable`. */
  data: readonly string[]
}

export const ERRORS = {
  parse_error: entry(-32700, 'The frame or its JSON could not be read; the connection closes.', []),
  invalid_request: entry(-32600, 'JSON, but no JSON-RPC 2.0 request: a batch, a wrong id, no method.', [
    'reason',
  ]),
  method_not_found: entry(-32601, 'No such method, or this version does not serve it.', []),
  invalid_params: entry(-32602, 'A value in `params` is refused.', ['path', 'reason']),
  internal: entry(-32603, 'A bug; `reference` stands in the log beside its trace.', ['reference']),
  not_initialized: entry(-32002, 'The first request must be `initialize`.', []),
  unsupported_protocol: entry(-32003, 'The server speaks other versions of the protocol.', ['supported']),
  not_found: entry(-32010, 'No such item, memory or branch.', []),
  invalid_ref: entry(-32011, 'Commit-ish unknown or ambiguous.', ['candidates']),
  conflict: entry(-32012, 'Idempotency key reused for something else, or a merge in the way.', []),
  busy: entry(
    -32013,
    'Another process held the store past the bound, or too many connections are open.',
    [],
    true,
  ),
  store_io: entry(-32014, 'Disk full, permissions, read-only.', ['reason']),
  corrupt_store: entry(-32015, 'Stored bytes are not what they must be; it is not written to again.', [
    'object',
    'problem',
  ]),
  too_large: entry(-32016, 'Past a limit; the message says how to ask for less.', [
    'limit',
    'actual',
    'path',
  ]),
  unauthorized: entry(-32017, 'Token missing, wrong, or not for this memory or verb.', []),
  shutting_down: entry(-32018, 'The server is ending; ask another one.', [], true),
  cancelled: entry(-32800, 'Cancelled by `$/cancelRequest` before it took effect.', []),
} as const satisfies Record<string, ErrorEntry>

/** Kinds of error, as `data.kind` says them. */
export type ErrorKind = keyof typeof ERRORS

/** The `error` member of an answer. `message` is a sentence that says what to do, without memory content. */
export interface WireError {
  code: number
  message: string
  data: { kind: ErrorKind; retryable: boolean } & Record<string, unknown>
}

/** Make the error for the wire; `facts` are the further members of `data`. */
export function wireError(kind: ErrorKind, message: string, facts: object = {}): WireError {
  const { code, retryable } = ERRORS[kind]
  return { code, message, data: { kind, retryable, ...facts } }
}

function entry(code: number, meaning: string, data: readonly string[], retryable = false): ErrorEntry {
  return { code, meaning, data, retryable }
}
