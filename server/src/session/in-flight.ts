import type { RequestId } from './incoming.ts'

interface Waiter {
  most: number
  resolve: () => void
}

/** The requests that were taken and are not answered yet. */
export class InFlight {
  // vscode-jsonrpc files requests under the text of their id, so 1 and "1" would be one to it.
  private readonly requests = new Map<string, number>()
  private waiters: Waiter[] = []
  /** Bytes of their bodies. */
  bytes = 0

  get size(): number {
    return this.requests.size
  }

  /** False when a request of this id is under way. */
  take(id: RequestId, bytes: number): boolean {
    const key = String(id)
    if (this.requests.has(key)) return false
    this.requests.set(key, bytes)
    this.bytes += bytes
    return true
  }

  /** Whether a request of this id is under way. */
  has(id: RequestId): boolean {
    return this.requests.has(String(id))
  }

  /** The answer is on its way. */
  answered(id: RequestId): void {
    const key = String(id)
    const bytes = this.requests.get(key)
    if (bytes === undefined) return
    this.requests.delete(key)
    this.bytes -= bytes
    if (this.waiters.length === 0) return
    const due = this.waiters.filter(({ most }) => this.size <= most)
    this.waiters = this.waiters.filter(({ most }) => this.size > most)
    for (const { resolve } of due) resolve()
  }

  /** Resolves when at most so many are unanswered. */
  atMost(most: number): Promise<void> {
    if (this.size <= most) return Promise.resolve()
    return new Promise((resolve) => this.waiters.push({ most, resolve }))
  }
}
