import { AddressError, readAddress, readHostPort, showAddress } from '../listen/address.ts'
import { isLogLevel, LOG_LEVELS, type LogLevel } from '../log-level.ts'

/** A value as it stands in the file, or as text from the command line or the environment. */
export type Raw = string | number | boolean | readonly string[]

/** One kind of value: how it is written, read, and shown again. */
export interface Kind<T> {
  /** What stands for it in the help. */
  readonly placeholder: string
  /** Whether it may be given several times. */
  readonly multiple?: boolean
  /** Throws a `ValueError`. */
  readonly read: (raw: Raw) => T
  /** As it would stand in a configuration file. */
  readonly show: (value: T) => string | number | readonly string[]
}

/** A value that is none of its kind; the message is the rest of a sentence, such as "is no duration; give …". */
export class ValueError extends Error {
  override readonly name = 'ValueError'
}

function text(raw: Raw): string {
  if (typeof raw !== 'string' || raw === '' || raw.includes('\0')) throw new ValueError('is no text')
  return raw
}

/** The text of one value; of a list, none, though a list of one prints like it. */
function scalar(raw: Raw): string {
  return typeof raw === 'string' || typeof raw === 'number' ? String(raw) : ''
}

export const path: Kind<string> = { placeholder: 'PATH', read: text, show: (value) => value }

export const addresses: Kind<readonly string[]> = {
  placeholder: 'ADDRESS',
  multiple: true,
  read(raw) {
    const all = typeof raw === 'string' ? raw.split(',') : raw
    if (!Array.isArray(all)) throw new ValueError('is no list of addresses')
    return all.map((one: unknown) =>
      withAddressError(() => showAddress(readAddress(text(one as Raw).trim()))),
    )
  },
  show: (value) => value,
}

export const hostPort: Kind<{ host: string; port: number }> = {
  placeholder: 'HOST:PORT',
  read: (raw) => withAddressError(() => readHostPort(text(raw))),
  show: ({ host, port }) => showAddress({ transport: 'tcp', host, port }).slice('tcp:'.length),
}

function withAddressError<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof AddressError ? new ValueError(error.message) : error
  }
}

export const mode: Kind<number> = {
  placeholder: 'MODE',
  read(raw) {
    if (typeof raw !== 'string' || !/^0?[0-7]{3}$/.test(raw))
      throw new ValueError('is no file mode; give octal digits in quotes, such as "0660"')
    return Number.parseInt(raw, 8)
  },
  show: (value) => `0${value.toString(8).padStart(3, '0')}`,
}

export const logLevel: Kind<LogLevel> = {
  placeholder: 'LEVEL',
  read(raw) {
    if (typeof raw === 'string' && isLogLevel(raw)) return raw
    throw new ValueError(`is no level; give one of ${LOG_LEVELS.join(', ')}`)
  },
  show: (value) => value,
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Longest timer of Node's. */
const LONGEST_MS = 2 ** 31 - 1

/** Milliseconds, written `500ms`, `10s`, `5m`, `1h`; a bare number is seconds. */
export const duration: Kind<number> = {
  placeholder: 'TIME',
  read(raw) {
    const [, digits, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(scalar(raw)) ?? []
    const ms = Math.round(Number(digits) * (UNIT_MS[unit] as number))
    if (digits === undefined || ms > LONGEST_MS)
      throw new ValueError('is no time; give one such as 500ms, 10s, 5m or 1h (at most 24d)')
    return ms
  },
  show(ms) {
    const unit = ['h', 'm', 's'].find((one) => ms % (UNIT_MS[one] as number) === 0) ?? 'ms'
    return ms === 0 ? '0s' : `${ms / (UNIT_MS[unit] as number)}${unit}`
  },
}

const UNIT_BYTES: Record<string, number> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }

/** Bytes, written `32MiB`, `1GiB` or as a bare number. */
export const bytes: Kind<number> = {
  placeholder: 'SIZE',
  read(raw) {
    const [, digits, unit = 'B'] = /^(\d+)(B|KiB|MiB|GiB)?$/.exec(scalar(raw)) ?? []
    const value = Number(digits) * (UNIT_BYTES[unit] as number)
    if (digits === undefined || !Number.isSafeInteger(value))
      throw new ValueError('is no size; give one such as 64KiB, 32MiB or 1GiB')
    return value
  },
  show(value) {
    const unit = ['GiB', 'MiB', 'KiB'].find((one) => value > 0 && value % (UNIT_BYTES[one] as number) === 0)
    return unit === undefined ? value : `${value / (UNIT_BYTES[unit] as number)}${unit}`
  },
}

export const count: Kind<number> = {
  placeholder: 'N',
  read(raw) {
    if (!/^\d{1,9}$/.test(scalar(raw)) || Number(raw) === 0)
      throw new ValueError('is no count; give a whole number from 1')
    return Number(raw)
  },
  show: (value) => value,
}

/** The same kind, with a least and a greatest value. */
export function within(kind: Kind<number>, least: number, most: number): Kind<number> {
  return {
    ...kind,
    read(raw) {
      const value = kind.read(raw)
      if (value < least || value > most)
        throw new ValueError(`is out of range; give ${kind.show(least)} to ${kind.show(most)}`)
      return value
    },
  }
}
