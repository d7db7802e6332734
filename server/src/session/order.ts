/**
 * Requests of one connection about one memory take effect in the order in which they were sent. Writes start at once
 * and in order, without waiting for each other, so that the store can commit many together; a read waits for the writes
 * before it, a write for the reads before it.
 */
export class Order {
  private readonly lanes = new Map<string, Lane>()
  private readonly writes = new Set<Promise<unknown>>()

  /** Change a memory. Called without delay where no read is under way. */
  write<T>(memory: string, run: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const done = this.enter(memory, 'write', run, signal)
    const settled = done.then(nothing, nothing)
    this.writes.add(settled)
    settled.then(() => this.writes.delete(settled))
    return done
  }

  /** Read a memory. */
  read<T>(memory: string, run: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.enter(memory, 'read', run, signal)
  }

  /** Read across memories, after all writes that came before. */
  async readAll<T>(run: () => Promise<T>): Promise<T> {
    if (this.writes.size > 0) await Promise.all(this.writes)
    return run()
  }

  private enter<T>(memory: string, kind: Kind, run: () => Promise<T>, signal: AbortSignal): Promise<T> {
    let lane = this.lanes.get(memory)
    if (lane === undefined) {
      lane = { kind, active: 0, waiting: [] }
      this.lanes.set(memory, lane)
    }
    if (lane.active === 0 || (lane.kind === kind && lane.waiting.length === 0)) {
      lane.kind = kind
      return this.run(memory, lane, run)
    }
    return this.wait(memory, lane, kind, run, signal)
  }

  private wait<T>(
    memory: string,
    lane: Lane,
    kind: Kind,
    run: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const entry: Entry = {
        kind,
        start: () => {
          signal.removeEventListener('abort', withdraw)
          this.run(memory, lane, run).then(resolve, reject)
        },
      }
      const withdraw = () => {
        lane.waiting = lane.waiting.filter((other) => other !== entry)
        reject(signal.reason)
        this.startNext(memory, lane)
      }
      lane.waiting.push(entry)
      signal.addEventListener('abort', withdraw, { once: true })
    })
  }

  private run<T>(memory: string, lane: Lane, run: () => Promise<T>): Promise<T> {
    lane.active++
    const leave = () => {
      lane.active--
      this.startNext(memory, lane)
    }
    let done: Promise<T>
    try {
      done = run()
    } catch (error) {
      done = Promise.reject(error)
    }
    done.then(leave, leave)
    return done
  }

  private startNext(memory: string, lane: Lane): void {
    for (let [next] = lane.waiting; next !== undefined; [next] = lane.waiting) {
      if (lane.active > 0 && lane.kind !== next.kind) return
      lane.kind = next.kind
      lane.waiting.shift()
      next.start()
    }
    if (lane.active === 0) this.lanes.delete(memory)
  }
}

type Kind = 'read' | 'write'

interface Entry {
  kind: Kind
  start: () => void
}

/** What is under way on one memory: any number of reads, or any number of writes. */
interface Lane {
  kind: Kind
  active: number
  waiting: Entry[]
}

function nothing(): void {}
