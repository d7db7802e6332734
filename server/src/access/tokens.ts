import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Verb } from '@mnem/protocol'
import type { Access } from './access.ts'
import type { TokenEntry } from './token-file.ts'

/** Says in a leaked text what it is, to people and to scanners for secrets. */
const PREFIX = 'mnem_'
const RANDOM_BYTES = 32

/** A new token: 256 random bits. */
export function newToken(): string {
  return PREFIX + randomBytes(RANDOM_BYTES).toString('base64url')
}

/** What the file keeps of a token: its SHA-256. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

interface Kept {
  hash: Buffer
  access: Access
}

/** The tokens that are good now. */
export class Tokens {
  private readonly kept: readonly Kept[]

  constructor(entries: readonly TokenEntry[]) {
    this.kept = entries.map(({ name, sha256, memories, verbs, author }) => ({
      hash: Buffer.from(sha256, 'hex'),
      access: { token: name, verbs: new Set<Verb>(verbs), memories, author },
    }))
  }

  get size(): number {
    return this.kept.length
  }

  /** What a token with this hash may do; undefined when there is none. All are compared, in constant time each. */
  find(hash: Buffer): Access | undefined {
    let found: Access | undefined
    for (const kept of this.kept) {
      if (timingSafeEqual(kept.hash, hash)) found = kept.access
    }
    return found
  }
}
