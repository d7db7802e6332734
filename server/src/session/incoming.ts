import { isAscii, isUtf8 } from 'node:buffer'
import { MnemError, parseJson } from '@mnem/core'
import { type WireError, wireError } from '@mnem/protocol'

/** Id of a request: a string or an integer up to 2^53-1. */
export type RequestId = string | number

export interface Request {
  jsonrpc: '2.0'
  id: RequestId
  method: string
  params?: object
}

export interface Notification {
  jsonrpc: '2.0'
  method: string
  params?: object
}

/** What a body turned out to be. A fatal refusal ends the connection, because its framing can't be trusted. */
export type Incoming =
  | { kind: 'request'; message: Request }
  | { kind: 'notification'; message: Notification }
  | { kind: 'refused'; id: RequestId | null; error: WireError; fatal: boolean }

/** Members whose objects are kept as their own text (format.md: content is never parsed and printed again). */
const isVerbatim = (key: string): boolean => key === 'json' || key === 'metadata'

/** Read the body of one frame. */
export function readBody(body: Buffer): Incoming {
  if (!isUtf8(body)) return unreadable('The body is not UTF-8.')
  const text = body.toString(isAscii(body) ? 'latin1' : 'utf8')
  let value: unknown
  try {
    value = parseJson(text, { verbatim: isVerbatim })
  } catch (error) {
    if (error instanceof MnemError) return refusedValue(text, error)
    return notJson()
  }
  return readMessage(value)
}

function readMessage(value: unknown): Incoming {
  if (Array.isArray(value))
    return invalid(null, 'Batches are not taken; send each request in a frame of its own.')
  if (value === null || typeof value !== 'object') return invalid(null, 'A request must be a JSON object.')
  const message = value as Record<string, unknown>
  const id = message.id
  if (id !== undefined && !isRequestId(id)) {
    return invalid(null, 'The id of a request must be a string or an integer up to 2^53-1.')
  }
  const answerTo = id ?? null
  if (message.jsonrpc !== '2.0') return invalid(answerTo, 'A request must carry "jsonrpc": "2.0".')
  if (typeof message.method !== 'string')
    return invalid(answerTo, 'A request must name its method as a string.')
  return id === undefined
    ? { kind: 'notification', message: value as unknown as Notification }
    : { kind: 'request', message: value as unknown as Request }
}

/** JSON whose values can't be kept: say where, to the request that it came in. */
function refusedValue(text: string, error: MnemError): Incoming {
  const id = requestIdIn(text)
  // The value was refused before the end of the text was seen.
  if (id === undefined) return notJson()
  const { path = '', reason = 'can not be kept' } = error.data
  if (id === null || !path.startsWith('params')) {
    const where = path === '' ? 'the message' : path.split(/[.[]/, 1)[0]
    return invalid(id, `A value in ${where} ${reason}.`)
  }
  const within = path.replace(/^params\.?/, '')
  const message = `${within === '' ? 'params' : within}: ${reason}`
  return {
    kind: 'refused',
    id,
    error: wireError('invalid_params', message, { path: within, reason }),
    fatal: false,
  }
}

/**
 * The id of a request whose values are refused; what it says twice or wrongly is no id to answer to. Undefined where the
 * text is no JSON at all.
 */
function requestIdIn(text: string): RequestId | null | undefined {
  try {
    const { id } = (JSON.parse(text) ?? {}) as { id?: unknown }
    return isRequestId(id) ? id : null
  } catch {
    return undefined
  }
}

export function isRequestId(id: unknown): id is RequestId {
  return (typeof id === 'string' && id.isWellFormed()) || (typeof id === 'number' && Number.isSafeInteger(id))
}

function invalid(id: RequestId | null, message: string): Incoming {
  return { kind: 'refused', id, error: wireError('invalid_request', message), fatal: false }
}

function notJson(): Incoming {
  return unreadable('The body is not JSON, or Content-Length does not count its bytes.')
}

function unreadable(message: string): Incoming {
  return {
    kind: 'refused',
    id: null,
    error: wireError('parse_error', `${message} The connection closes; open another one.`),
    fatal: true,
  }
}
