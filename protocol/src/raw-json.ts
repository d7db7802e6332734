import { z } from 'zod'

/**
 * A JSON object that is carried as its own text, so that key order and the spelling of numbers survive (format.md). The
 * transport makes it while it parses (`JsonText` of @mnem/core); the contract only knows that it is an object of some
 * class with a `text`, because this package imports nothing of the store.
 */
export interface RawJson {
  readonly text: string
}

/**
 * Whether a value is such a text. What `JSON.parse` and its kin make has the prototype of plain objects or none, so an
 * object that a peer sent can't pass for one.
 */
export function isRawJson(value: unknown): value is RawJson {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return false
  const prototype = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return false
  return typeof (value as { text?: unknown }).text === 'string'
}

/** Schema of a JSON object in `params`; on the wire it is any object. */
export const rawJson = z.custom<RawJson>(isRawJson, { error: 'is not a JSON object' }).meta({
  description: 'Any JSON object. Key order, integers from -2^63 to 2^64-1 and floats keep their exact form.',
})
