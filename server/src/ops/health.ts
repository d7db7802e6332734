import { MnemError, type Stores } from '@mnem/core'

/** Whether the server can do its work now. */
export interface Readiness {
  ready: boolean
  /** Why not, as a sentence. */
  reason?: string
}

/** Looks at most so often: a probe must cost nothing. */
const FRESH_MS = 500

/** Knows whether the store can be written to, without opening or committing anything. */
export class Health {
  private readonly stores: Pick<Stores, 'checkWritable'>
  private seen: Readiness = { ready: true }
  private seenAt = Number.NEGATIVE_INFINITY
  private stopping = false

  constructor(stores: Pick<Stores, 'checkWritable'>) {
    this.stores = stores
  }

  readiness(): Readiness {
    if (this.stopping) return { ready: false, reason: 'The server is stopping.' }
    if (performance.now() - this.seenAt < FRESH_MS) return this.seen
    this.seen = this.look()
    this.seenAt = performance.now()
    return this.seen
  }

  /** From now on it is not ready. */
  stop(): void {
    this.stopping = true
  }

  private look(): Readiness {
    try {
      this.stores.checkWritable()
      return { ready: true }
    } catch (error) {
      if (error instanceof MnemError) return { ready: false, reason: error.message }
      throw error
    }
  }
}
