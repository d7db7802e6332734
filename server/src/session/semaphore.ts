/** Lets so many run at once, the others in the order in which they came. */
export class Semaphore {
  private free: number
  private readonly waiting: Array<() => void> = []

  constructor(permits: number) {
    this.free = permits
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free--
    else await new Promise<void>((resolve) => this.waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.waiting.shift()
      if (next === undefined) this.free++
      else next()
    }
  }
}
