import { invalidParams, MnemError } from './errors.ts'

/** Longest name of a memory, in UTF-8 bytes. */
export const NAME_BYTES = 255

/** Highest item number: ids have ten digits. */
export const MAX_NUMBER = 9_999_999_999

const CONTROL = /\p{Cc}/u

/** Check the name of a memory: 1 to 255 UTF-8 bytes of any text without control characters or lone surrogates. */
export function checkMemoryName(name: string, path = 'memory'): void {
  checkText(name, path)
  if (CONTROL.test(name)) throw invalidParams(path, 'holds a control character; use printable text')
  const bytes = Buffer.byteLength(name)
  if (bytes === 0) throw invalidParams(path, 'is empty; give the memory a name')
  if (bytes > NAME_BYTES) throw invalidParams(path, `has ${bytes} bytes; a name has at most ${NAME_BYTES}`)
}

/** Check any other text that is to be stored: no lone surrogates, which no UTF-8 can carry. */
export function checkText(text: string, path: string): void {
  if (!text.isWellFormed()) {
    throw invalidParams(path, 'holds half of a surrogate pair, which no UTF-8 can carry; remove it')
  }
}

/** The node id of item `number` of a store with this prefix: `prefs:0000000007`. */
export function itemId(prefix: string, number: number): string {
  return `${prefix}:${String(number).padStart(10, '0')}`
}

/** The node id of a store's counter. */
export function counterId(prefix: string): string {
  return `${prefix}:_seq`
}

/** The number in an item's id, or undefined where `id` is no item id of a store with this prefix. */
export function itemNumber(prefix: string, id: string): number | undefined {
  if (id.length !== prefix.length + 11 || !id.startsWith(prefix) || id[prefix.length] !== ':')
    return undefined
  const digits = id.slice(-10)
  return /^\d{10}$/.test(digits) ? Number(digits) : undefined
}

/** The error for an item that is not there. */
export function noSuchItem(memory: string, id: string): MnemError {
  return new MnemError(
    'not_found',
    `Memory "${memory}" has no item ${JSON.stringify(id)} there; list its items for the ids it has.`,
  )
}
