import type { Semaphore } from './semaphore.ts'

/** Reads of one connection that may be under way at once. The store answers them one after another anyway. */
const TOGETHER = 4

/**
 * Lets reads through only while there is room for their answers: each may be tens of megabytes, and a peer can ask for
 * many in a few bytes, then read none of them.
 */
export class ReadGate {
  private readonly hasRoom: () => boolean
  private readonly turns: Semaphore
  private active = 0
  private readonly waiting: Array<() => void> = []

  /** `turns` are those of all connections. */
  constructor(hasRoom: () => boolean, turns: Semaphore) {
    this.hasRoom = hasRoom
    this.turns = turns
  }

  async run<T>(read: () => Promise<T>): Promise<T> {
    for (;;) {
      await this.enter()
      try {
        // While it waited for its turn, the answers before it may have filled the room.
        const done = await this.turns.run(async () => (this.hasRoom() ? { answer: await read() } : undefined))
        if (done !== undefined) return done.answer
      } finally {
        this.active--
        // Not before this answer has been queued, so that its size counts.
        process.nextTick(() => this.update())
      }
    }
  }

  /** There may be room again. */
  update(): void {
    while (this.active < TOGETHER && this.hasRoom()) {
      const next = this.waiting.shift()
      if (next === undefined) return
      this.active++
      next()
    }
  }

  private async enter(): Promise<void> {
    if (this.active >= TOGETHER || this.waiting.length > 0 || !this.hasRoom())
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    else this.active++
  }
}
