import { crc32 } from 'node:zlib'
import { MnemError } from '../errors.ts'
import { toHex } from '../id.ts'
import type { Row } from './engine.ts'

/** The checksum of a row over all it holds, its place included, so that a row in a wrong place is noticed too. */
export function rowChecksum(row: Row): number {
  const place = new Float64Array([
    row.seq,
    row.memory,
    row.line,
    row.depth,
    row.parents[0] ?? 0,
    row.parents[1] ?? 0,
  ])
  return crc32(row.body, crc32(row.id, crc32(new Uint8Array(place.buffer))))
}

/** The error for a row that is not what was written. */
export function damagedRow(row: Pick<Row, 'seq' | 'id'>): MnemError {
  const object = toHex(row.id)
  return new MnemError(
    'corrupt_store',
    `The stored row ${row.seq} (commit ${object.slice(0, 12)}) is damaged: its checksum does not match. Restore the store from a backup; nothing was changed.`,
    { object, problem: 'checksum' },
  )
}

/** The error for a row that is referred to and not there. */
export function missingRow(seq: number): MnemError {
  return new MnemError(
    'corrupt_store',
    `The store refers to row ${seq}, which is not there. Restore the store from a backup; nothing was changed.`,
    { object: `row ${seq}`, problem: 'missing' },
  )
}
