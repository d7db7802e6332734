import { invalidParams } from './errors.ts'

/**
 * JSON without loss. `JSON.parse` forgets what this store promises to keep: `1` against `1.0`, integers beyond 2^53, the
 * order of keys that look like integers; and it lets duplicate keys and lone surrogates through. So content is read
 * here, once, and then kept as its own text.
 */

/** Deepest nesting of arrays and objects in one stored JSON value (format.md). */
export const MAX_DEPTH = 100

/** Deepest nesting of a node's content: an item's value stands inside up to three objects of ours. */
const STORED_DEPTH = MAX_DEPTH + 3

const MIN_INTEGER = -(2n ** 63n)
const MAX_INTEGER = 2n ** 64n - 1n

/** A JSON value kept as its canonical text: no white space, numbers in canonical spelling, keys in the order given. */
export class JsonText {
  readonly text: string

  /** `text` must be canonical, as `parseJson` and `canonicalJson` make it; it is not looked at here. */
  constructor(text: string) {
    this.text = text
  }

  toString(): string {
    return this.text
  }
}

/** A number that JSON spells as a float (`1.0`, `1e3`, `-0`), kept apart from the integer of the same value. */
export class Float {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/** A JSON value with every distinction kept: integers are `number` (safe) or `bigint`, objects are `Map`s in order. */
export type JsonValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | Float
  | JsonValue[]
  | Map<string, JsonValue>

export interface ParseOptions {
  /** Levels of arrays and objects allowed inside a verbatim value, and around it. Default 100. */
  maxDepth?: number
  /** Whether an object that is the value of member `key` is kept as `JsonText` instead of being read. */
  verbatim?: (key: string) => boolean
}

/**
 * Read JSON text. Strings, booleans, null, arrays and objects (null prototype) come as themselves; integers as `number`
 * where exact, else `bigint`; floats as `number`; objects under a verbatim key as `JsonText`.
 *
 * Throws `SyntaxError` for what is not JSON, and `MnemError` `invalid_params` naming the path for JSON that can't be
 * kept: duplicate keys, lone surrogates, numbers out of range, nesting too deep.
 */
export function parseJson(text: string, options: ParseOptions = {}): unknown {
  const scanner = new Scanner(text, options.maxDepth ?? MAX_DEPTH)
  const value = scanner.plain(1, options.verbatim)
  scanner.end()
  return value
}

/** Read a node's content into a `JsonValue`; the same errors as `parseJson`. */
export function readJson(text: string): JsonValue {
  const scanner = new Scanner(text, STORED_DEPTH)
  const value = scanner.value(1)
  scanner.end()
  return value
}

/** The canonical text of any JSON text; the same errors as `parseJson`. */
export function canonicalJson(text: string, path = ''): JsonText {
  const scanner = new Scanner(text, MAX_DEPTH, path)
  const canonical = scanner.copy(1)
  scanner.end()
  return new JsonText(canonical)
}

/** A member of an object's canonical text: its key, and where its value's text stands. */
export interface Member {
  key: string
  start: number
  end: number
}

/** The members of a canonical object text, without reading the values. Empty for what is no object. */
export function members(text: string): Member[] {
  if (text[0] !== '{') return []
  return new Scanner(text, Number.POSITIVE_INFINITY).members()
}

/** Write a value as JSON; a `JsonText` anywhere in it is copied in as it stands, `undefined` members are left out. */
export function stringifyJson(value: unknown): string {
  if (value instanceof JsonText) return value.text
  if (typeof value === 'bigint') return value.toString()
  if (Array.isArray(value)) {
    let out = '['
    for (let i = 0; i < value.length; i++) out += (i === 0 ? '' : ',') + stringifyJson(value[i])
    return `${out}]`
  }
  if (value !== null && typeof value === 'object') {
    let out = '{'
    for (const [key, member] of Object.entries(value)) {
      if (member === undefined) continue
      out += `${out.length > 1 ? ',' : ''}${JSON.stringify(key)}:${stringifyJson(member)}`
    }
    return `${out}}`
  }
  return value === undefined ? 'null' : JSON.stringify(value)
}

/** The canonical spelling of a float: the shortest that reads back as the same value, and never as an integer. */
export function floatText(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  const shortest = String(value)
  return /[.e]/.test(shortest) ? shortest : `${shortest}.0`
}

type PathStep = string | number

/** A path as error messages show it: `items[0].content.json.a`, odd keys quoted. */
function showPath(base: string, steps: readonly PathStep[]): string {
  let path = base
  for (const step of steps) {
    if (typeof step === 'number') path += `[${step}]`
    else if (/^[A-Za-z_$][\w$-]*$/.test(step)) path += path === '' ? step : `.${step}`
    else path += `[${JSON.stringify(step)}]`
  }
  return path
}

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these inside a string
const CONTROL = /[\u0000-\u001f]/
const QUOTE = 0x22
const BACKSLASH = 0x5c

class Scanner {
  private readonly text: string
  private readonly maxDepth: number
  private readonly base: string
  private readonly steps: PathStep[] = []
  private at = 0

  constructor(text: string, maxDepth: number, base = '') {
    this.text = text
    this.maxDepth = maxDepth
    this.base = base
  }

  /** The value here as plain JavaScript. */
  plain(depth: number, verbatim: ((key: string) => boolean) | undefined): unknown {
    const code = this.peek()
    if (code === 0x7b) {
      const object: Record<string, unknown> = Object.create(null)
      this.object(depth, (key) => {
        if (key in object) this.refuseDuplicate()
        const kept = verbatim?.(key) === true && this.peek() === 0x7b
        object[key] = kept ? new JsonText(this.copy(1)) : this.plain(depth + 1, verbatim)
      })
      return object
    }
    if (code === 0x5b) {
      const array: unknown[] = []
      this.array(depth, () => array.push(this.plain(depth + 1, verbatim)))
      return array
    }
    const scalar = this.scalar()
    return scalar instanceof Float ? scalar.value : scalar
  }

  /** The value here with every distinction kept. */
  value(depth: number): JsonValue {
    const code = this.peek()
    if (code === 0x7b) {
      const map = new Map<string, JsonValue>()
      this.object(depth, (key) => {
        if (map.has(key)) this.refuseDuplicate()
        map.set(key, this.value(depth + 1))
      })
      return map
    }
    if (code === 0x5b) {
      const array: JsonValue[] = []
      this.array(depth, () => array.push(this.value(depth + 1)))
      return array
    }
    return this.scalar()
  }

  /** The canonical text of the value here. */
  copy(depth: number): string {
    const code = this.peek()
    if (code === 0x7b) {
      const keys = new Set<string>()
      let out = '{'
      this.object(depth, (key) => {
        if (keys.has(key)) this.refuseDuplicate()
        keys.add(key)
        out += `${out.length > 1 ? ',' : ''}${JSON.stringify(key)}:${this.copy(depth + 1)}`
      })
      return `${out}}`
    }
    if (code === 0x5b) {
      let out = '['
      this.array(depth, (index) => {
        out += (index > 0 ? ',' : '') + this.copy(depth + 1)
      })
      return `${out}]`
    }
    const scalar = this.scalar()
    if (scalar instanceof Float) return floatText(scalar.value)
    return typeof scalar === 'string' ? JSON.stringify(scalar) : String(scalar)
  }

  /** The members of the object here, their values passed over. */
  members(): Member[] {
    const found: Member[] = []
    this.object(1, (key) => {
      this.peek()
      const start = this.at
      this.skip()
      found.push({ key, start, end: this.at })
    })
    return found
  }

  end(): void {
    this.space()
    if (this.at < this.text.length) this.fail()
  }

  private object(depth: number, member: (key: string) => void): void {
    this.enter(depth)
    if (this.peek() === 0x7d) {
      this.at++
      return
    }
    for (;;) {
      if (this.peek() !== QUOTE) this.fail()
      this.steps.push('')
      const key = this.string()
      this.steps[this.steps.length - 1] = key
      if (this.peek() !== 0x3a) this.fail()
      this.at++
      member(key)
      this.steps.pop()
      const next = this.peek()
      this.at++
      if (next === 0x7d) return
      if (next !== 0x2c) this.fail()
    }
  }

  private array(depth: number, element: (index: number) => void): void {
    this.enter(depth)
    if (this.peek() === 0x5d) {
      this.at++
      return
    }
    for (let index = 0; ; index++) {
      this.steps.push(index)
      element(index)
      this.steps.pop()
      const next = this.peek()
      this.at++
      if (next === 0x5d) return
      if (next !== 0x2c) this.fail()
    }
  }

  private enter(depth: number): void {
    this.at++
    if (depth > this.maxDepth) this.refuse(`nests deeper than ${this.maxDepth} levels; store a flatter value`)
  }

  private scalar(): null | boolean | string | number | bigint | Float {
    switch (this.peek()) {
      case QUOTE:
        return this.string()
      case 0x74:
        return this.word('true', true)
      case 0x66:
        return this.word('false', false)
      case 0x6e:
        return this.word('null', null)
      default:
        return this.number()
    }
  }

  private word<T>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.at)) this.fail()
    this.at += word.length
    return value
  }

  private number(): number | bigint | Float {
    NUMBER.lastIndex = this.at
    const match = NUMBER.exec(this.text)
    if (match === null) this.fail()
    const source = match[0]
    this.at += source.length
    if (match[1] !== undefined || match[2] !== undefined || source === '-0') {
      const value = Number(source)
      if (!Number.isFinite(value)) this.refuse('is beyond the range of a 64-bit float; store it as a string')
      return new Float(value)
    }
    if (source.length <= 15) return Number(source)
    if (source.length > 20) this.refuseInteger()
    const value = BigInt(source)
    if (value < MIN_INTEGER || value > MAX_INTEGER) this.refuseInteger()
    const small = Number(value)
    return Number.isSafeInteger(small) ? small : value
  }

  private string(): string {
    const start = this.at + 1
    const end = this.closingQuote(start)
    const raw = this.text.slice(start, end)
    this.at = end + 1
    let value = raw
    if (raw.includes('\\')) {
      try {
        value = JSON.parse(`"${raw}"`)
      } catch {
        this.fail()
      }
    } else if (CONTROL.test(raw)) {
      this.fail()
    }
    if (!value.isWellFormed()) {
      this.refuse(
        'holds half of a surrogate pair, which no UTF-8 can carry; remove it or replace it with U+FFFD',
      )
    }
    return value
  }

  private closingQuote(start: number): number {
    for (let end = this.text.indexOf('"', start); end !== -1; end = this.text.indexOf('"', end + 1)) {
      let slashes = 0
      while (end - slashes > start && this.text.charCodeAt(end - slashes - 1) === BACKSLASH) slashes++
      if (slashes % 2 === 0) return end
    }
    this.fail()
  }

  /** Pass over a value of canonical text. */
  private skip(): void {
    let depth = 0
    do {
      const code = this.text.charCodeAt(this.at)
      if (code === QUOTE) {
        this.at = this.closingQuote(this.at + 1) + 1
      } else if (code === 0x7b || code === 0x5b) {
        depth++
        this.at++
      } else if (code === 0x7d || code === 0x5d) {
        depth--
        this.at++
      } else if (code === 0x2c || code === 0x3a) {
        this.at++
      } else {
        const from = this.at
        while (this.at < this.text.length && !',]}'.includes(this.text[this.at] as string)) this.at++
        if (this.at === from) this.fail()
      }
    } while (depth > 0)
  }

  private peek(): number {
    this.space()
    return this.text.charCodeAt(this.at)
  }

  private space(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.at++
    }
  }

  private refuseDuplicate(): never {
    this.refuse('stands twice in its object; keep one')
  }

  private refuseInteger(): never {
    this.refuse('is an integer outside -2^63 to 2^64-1; store it as a string')
  }

  private refuse(reason: string): never {
    throw invalidParams(showPath(this.base, this.steps), reason)
  }

  private fail(): never {
    throw new SyntaxError(`not JSON at character ${this.at}`)
  }
}
