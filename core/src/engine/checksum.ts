import { crc32 } from 'node:zlib'
import { MnemError } from '../errors.ts'
import { toHex } from '../id.ts'
import type { Entry, MemoryRecord, Row } from './engine.ts'

/**
 * Checksums (CRC-32) of everything that is kept, over content and place: damage is noticed when it is read, and so is a
 * sound record in a wrong place.
 */

/** Of a row over all that it holds. */
export function rowChecksum(row: Row): number {
  const { seq, memory, line, depth, parents } = row
  return crc32(
    row.body,
    crc32(row.id, ofNumbers([seq, memory, line, depth, parents[0] ?? 0, parents[1] ?? 0])),
  )
}

/** Of what says where a branch points. */
export function refChecksum(memory: number, branch: string, seq: number): number {
  return crc32(branch, ofNumbers([memory, seq]))
}

/** Of a memory's own record. */
export function memoryChecksum({ id, name, prefix, default_branch, epoch }: MemoryRecord): number {
  return crc32(JSON.stringify([name, prefix, default_branch]), ofNumbers([id, epoch]))
}

/** Of an index entry. */
export function entryChecksum(memory: number, { key, value }: Entry): number {
  return crc32(value, crc32(key, ofNumbers([memory, key.length])))
}

function ofNumbers(numbers: readonly number[]): number {
  return crc32(new Uint8Array(Float64Array.from(numbers).buffer))
}

/** The error for a row that is not what was written. */
export function damagedRow(row: Pick<Row, 'seq' | 'id'>): MnemError {
  const id = row.id instanceof Uint8Array ? toHex(row.id) : 'unreadable'
  return damaged(`row ${row.seq}`, id, `commit ${id.slice(0, 12)}`)
}

/** The error for a row that is referred to and not there. */
export function missingRow(seq: number): MnemError {
  const object = `row ${seq}`
  return new MnemError('corrupt_store', `The store refers to ${object}, which is not there. ${REMEDY}`, {
    object,
    problem: 'missing',
  })
}

/** The error for anything else that is not what was written; `object` names it to a program, `what` to a person. */
export function damaged(what: string, object = what, more = ''): MnemError {
  const named = more === '' ? what : `${what} (${more})`
  return new MnemError(
    'corrupt_store',
    `The store is damaged: the checksum of ${named} does not match. ${REMEDY}`,
    {
      object,
      problem: 'checksum',
    },
  )
}

const REMEDY = 'Restore it from a backup; nothing was changed.'
