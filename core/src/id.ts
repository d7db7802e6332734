import { blake3 } from '@noble/hashes/blake3.js'

/** Bytes of an object id. */
export const ID_BYTES = 32

/** The id of an object: BLAKE3-256 of its canonical CBOR. */
export function objectId(cbor: Uint8Array): Buffer {
  return Buffer.from(blake3(cbor).buffer)
}

/** An id as text: 64 lowercase hex digits. */
export function toHex(id: Uint8Array): string {
  return Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString('hex')
}
