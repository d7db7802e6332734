import { hash } from './blake3.ts'

/** Bytes of an object id. */
export const ID_BYTES = 32

/** The id of an object: BLAKE3-256 of its canonical CBOR. */
export function objectId(cbor: Uint8Array): Buffer {
  return hash(cbor)
}

/** An id as text: 64 lowercase hex digits. */
export function toHex(id: Uint8Array): string {
  return Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString('hex')
}

/** The bytes of an id that is written as hex digits. */
export function fromHex(text: string): Buffer {
  return Buffer.from(text, 'hex')
}
