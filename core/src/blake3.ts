/**
 * BLAKE3 in hash mode, by its specification, taken apart as far as a store needs it: the chaining value of a chunk, of a
 * parent, and the root. A library hashes whole inputs only; an add changes two chunks of a state of any size
 * (state-hash.ts). Checked against @noble/hashes in the tests.
 */

/** Bytes of a chunk: a leaf of the tree. */
export const CHUNK_BYTES = 1024
/** Words of a chaining value. */
export const CV_WORDS = 8

const BLOCK_BYTES = 64
const CHUNK_START = 1
const CHUNK_END = 2
const PARENT = 4
const ROOT = 8

const IV = Uint32Array.of(
  0x6a09e667,
  0xbb67ae85,
  0x3c6ef372,
  0xa54ff53a,
  0x510e527f,
  0x9b05688c,
  0x1f83d9ab,
  0x5be0cd19,
)

const PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]

/** Which message word each step of the seven rounds takes. */
const S = schedule()

function schedule(): Uint8Array {
  const words = new Uint8Array(7 * 16)
  let order = Array.from({ length: 16 }, (_, i) => i)
  for (let round = 0; round < 7; round++) {
    words.set(order, round * 16)
    order = PERMUTATION.map((from) => order[from] as number)
  }
  return words
}

let compressed = 0

/** How many blocks were compressed since the process began: what an operation costs, whatever the machine. */
export function compressions(): number {
  return compressed
}

/** The hash of `input`, 32 bytes. */
export function hash(input: Uint8Array): Buffer {
  const stack = new Uint32Array(64 * CV_WORDS)
  let depth = 0
  let chunk = 0
  for (; (chunk + 1) * CHUNK_BYTES < input.length; chunk++) {
    chunkValue(input, chunk * CHUNK_BYTES, CHUNK_BYTES, chunk, stack, depth++ * CV_WORDS)
    // As many subtrees are complete now as the chunks' number has trailing zeros.
    for (let total = chunk + 1; total % 2 === 0; total /= 2) {
      depth--
      parentValue(stack, (depth - 1) * CV_WORDS, stack, depth * CV_WORDS, stack, (depth - 1) * CV_WORDS)
    }
  }
  const start = chunk * CHUNK_BYTES
  return finish(stack, depth, input.subarray(start), chunk)
}

/**
 * The root over complete subtrees, left to right in `stack` (`depth` of them, each larger than the next), and the last
 * chunk, which is never empty but for the empty input.
 */
export function finish(stack: Uint32Array, depth: number, last: Uint8Array, index: number): Buffer {
  const value = new Uint32Array(CV_WORDS)
  chunkValue(last, 0, last.length, index, value, 0, depth === 0 ? ROOT : 0)
  for (let left = depth - 1; left >= 0; left--) {
    parentValue(stack, left * CV_WORDS, value, 0, value, 0, left === 0 ? ROOT : 0)
  }
  const out = Buffer.allocUnsafe(32)
  for (let i = 0; i < CV_WORDS; i++) out.writeUInt32LE(value[i] as number, i * 4)
  return out
}

const block = new Uint32Array(16)

/** Chaining value of the chunk `input[start, start + length)`, which is the `index`-th of its input. */
export function chunkValue(
  input: Uint8Array,
  start: number,
  length: number,
  index: number,
  out: Uint32Array,
  outAt: number,
  root = 0,
): void {
  for (let i = 0; i < CV_WORDS; i++) out[outAt + i] = IV[i] as number
  const blocks = Math.max(1, Math.ceil(length / BLOCK_BYTES))
  for (let i = 0; i < blocks; i++) {
    const at = start + i * BLOCK_BYTES
    const size = Math.min(BLOCK_BYTES, length - i * BLOCK_BYTES)
    readBlock(input, at, size)
    const flags = (i === 0 ? CHUNK_START : 0) | (i === blocks - 1 ? CHUNK_END | root : 0)
    compress(out, outAt, index, size, flags)
  }
}

/** Chaining value of the parent of two subtrees. `out` may be where one of them stands. */
export function parentValue(
  left: Uint32Array,
  leftAt: number,
  right: Uint32Array,
  rightAt: number,
  out: Uint32Array,
  outAt: number,
  root = 0,
): void {
  for (let i = 0; i < CV_WORDS; i++) {
    block[i] = left[leftAt + i] as number
    block[CV_WORDS + i] = right[rightAt + i] as number
  }
  for (let i = 0; i < CV_WORDS; i++) out[outAt + i] = IV[i] as number
  compress(out, outAt, 0, BLOCK_BYTES, PARENT | root)
}

function readBlock(input: Uint8Array, at: number, size: number): void {
  if (size < BLOCK_BYTES) block.fill(0)
  let byte = at
  for (let word = 0; word < size >> 2; word++, byte += 4) {
    block[word] =
      (input[byte] as number) |
      ((input[byte + 1] as number) << 8) |
      ((input[byte + 2] as number) << 16) |
      ((input[byte + 3] as number) << 24)
  }
  if (byte === at + size) return
  let tail = 0
  for (let shift = 0; byte < at + size; byte++, shift += 8) tail |= (input[byte] as number) << shift
  block[size >> 2] = tail
}

/**
 * Compress `block` into the chaining value at `cv[at]`, in place. The rounds are written out over local variables, a line
 * for each half of a G of the specification: V8 keeps those in registers.
 */
function compress(cv: Uint32Array, at: number, counter: number, size: number, flags: number): void {
  compressed++
  const m = block
  let v0 = cv[at] as number
  let v1 = cv[at + 1] as number
  let v2 = cv[at + 2] as number
  let v3 = cv[at + 3] as number
  let v4 = cv[at + 4] as number
  let v5 = cv[at + 5] as number
  let v6 = cv[at + 6] as number
  let v7 = cv[at + 7] as number
  let v8 = 0x6a09e667
  let v9 = 0xbb67ae85 | 0
  let v10 = 0x3c6ef372
  let v11 = 0xa54ff53a | 0
  let v12 = counter | 0
  let v13 = Math.floor(counter / 0x100000000)
  let v14 = size
  let v15 = flags
  // biome-ignore format: a line for each half of a G
  for (let s = 0; s < 112; s += 16) {
    v0 = (v0 + v4 + (m[S[s + 0] as number] as number)) | 0; v12 ^= v0; v12 = (v12 >>> 16) | (v12 << 16); v8 = (v8 + v12) | 0; v4 ^= v8; v4 = (v4 >>> 12) | (v4 << 20)
    v0 = (v0 + v4 + (m[S[s + 1] as number] as number)) | 0; v12 ^= v0; v12 = (v12 >>> 8) | (v12 << 24); v8 = (v8 + v12) | 0; v4 ^= v8; v4 = (v4 >>> 7) | (v4 << 25)
    v1 = (v1 + v5 + (m[S[s + 2] as number] as number)) | 0; v13 ^= v1; v13 = (v13 >>> 16) | (v13 << 16); v9 = (v9 + v13) | 0; v5 ^= v9; v5 = (v5 >>> 12) | (v5 << 20)
    v1 = (v1 + v5 + (m[S[s + 3] as number] as number)) | 0; v13 ^= v1; v13 = (v13 >>> 8) | (v13 << 24); v9 = (v9 + v13) | 0; v5 ^= v9; v5 = (v5 >>> 7) | (v5 << 25)
    v2 = (v2 + v6 + (m[S[s + 4] as number] as number)) | 0; v14 ^= v2; v14 = (v14 >>> 16) | (v14 << 16); v10 = (v10 + v14) | 0; v6 ^= v10; v6 = (v6 >>> 12) | (v6 << 20)
    v2 = (v2 + v6 + (m[S[s + 5] as number] as number)) | 0; v14 ^= v2; v14 = (v14 >>> 8) | (v14 << 24); v10 = (v10 + v14) | 0; v6 ^= v10; v6 = (v6 >>> 7) | (v6 << 25)
    v3 = (v3 + v7 + (m[S[s + 6] as number] as number)) | 0; v15 ^= v3; v15 = (v15 >>> 16) | (v15 << 16); v11 = (v11 + v15) | 0; v7 ^= v11; v7 = (v7 >>> 12) | (v7 << 20)
    v3 = (v3 + v7 + (m[S[s + 7] as number] as number)) | 0; v15 ^= v3; v15 = (v15 >>> 8) | (v15 << 24); v11 = (v11 + v15) | 0; v7 ^= v11; v7 = (v7 >>> 7) | (v7 << 25)
    v0 = (v0 + v5 + (m[S[s + 8] as number] as number)) | 0; v15 ^= v0; v15 = (v15 >>> 16) | (v15 << 16); v10 = (v10 + v15) | 0; v5 ^= v10; v5 = (v5 >>> 12) | (v5 << 20)
    v0 = (v0 + v5 + (m[S[s + 9] as number] as number)) | 0; v15 ^= v0; v15 = (v15 >>> 8) | (v15 << 24); v10 = (v10 + v15) | 0; v5 ^= v10; v5 = (v5 >>> 7) | (v5 << 25)
    v1 = (v1 + v6 + (m[S[s + 10] as number] as number)) | 0; v12 ^= v1; v12 = (v12 >>> 16) | (v12 << 16); v11 = (v11 + v12) | 0; v6 ^= v11; v6 = (v6 >>> 12) | (v6 << 20)
    v1 = (v1 + v6 + (m[S[s + 11] as number] as number)) | 0; v12 ^= v1; v12 = (v12 >>> 8) | (v12 << 24); v11 = (v11 + v12) | 0; v6 ^= v11; v6 = (v6 >>> 7) | (v6 << 25)
    v2 = (v2 + v7 + (m[S[s + 12] as number] as number)) | 0; v13 ^= v2; v13 = (v13 >>> 16) | (v13 << 16); v8 = (v8 + v13) | 0; v7 ^= v8; v7 = (v7 >>> 12) | (v7 << 20)
    v2 = (v2 + v7 + (m[S[s + 13] as number] as number)) | 0; v13 ^= v2; v13 = (v13 >>> 8) | (v13 << 24); v8 = (v8 + v13) | 0; v7 ^= v8; v7 = (v7 >>> 7) | (v7 << 25)
    v3 = (v3 + v4 + (m[S[s + 14] as number] as number)) | 0; v14 ^= v3; v14 = (v14 >>> 16) | (v14 << 16); v9 = (v9 + v14) | 0; v4 ^= v9; v4 = (v4 >>> 12) | (v4 << 20)
    v3 = (v3 + v4 + (m[S[s + 15] as number] as number)) | 0; v14 ^= v3; v14 = (v14 >>> 8) | (v14 << 24); v9 = (v9 + v14) | 0; v4 ^= v9; v4 = (v4 >>> 7) | (v4 << 25)
  }
  cv[at] = v0 ^ v8
  cv[at + 1] = v1 ^ v9
  cv[at + 2] = v2 ^ v10
  cv[at + 3] = v3 ^ v11
  cv[at + 4] = v4 ^ v12
  cv[at + 5] = v5 ^ v13
  cv[at + 6] = v6 ^ v14
  cv[at + 7] = v7 ^ v15
}
