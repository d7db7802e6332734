import { z } from 'zod'

/** Longest name of a memory or a branch, author and idempotency key, in UTF-8 bytes. */
export const NAME_BYTES = 255

const CONTROL = /\p{Cc}/u

/** UTF-8 bytes of a well-formed string. Counted here because this package has no `Buffer`. */
export function utf8Bytes(text: string): number {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    // Half of a pair stands for two of the four bytes of its code point; it counts one already.
    bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2
  }
  return bytes
}

interface TextRule {
  min?: number
  max: number
  /** Refuse C0, DEL and C1. */
  printable?: boolean
  description: string
}

/** A string of `min` to `max` UTF-8 bytes without lone surrogates. */
export function text({ min = 0, max, printable = false, description }: TextRule) {
  return z
    .string()
    .check((context) => {
      const value = context.value
      // A UTF-16 unit is at least one byte, so a very long string needs no counting.
      const bytes = value.length > max ? value.length : utf8Bytes(value)
      const reason = refusal(value, bytes, min, max, printable)
      if (reason !== undefined) {
        context.issues.push({ code: 'custom', input: undefined, message: reason, continue: false })
      }
    })
    .meta({ description, ...(min > 0 ? { minLength: min } : {}), maxLength: max })
}

function refusal(value: string, bytes: number, min: number, max: number, printable: boolean) {
  if (bytes < min) return 'is empty; give it at least one character'
  if (bytes > max) return `is longer than ${max} UTF-8 bytes`
  if (!value.isWellFormed()) return 'holds half of a surrogate pair, which no UTF-8 can carry; remove it'
  if (printable && CONTROL.test(value)) return 'holds a control character; use printable text'
  return undefined
}
