import type { Engine, EngineWriter } from './engine/engine.ts'
import { MnemError } from './errors.ts'

export interface WriteControl {
  /** Aborted before the commit is made: nothing is stored and the call fails as `cancelled`. */
  signal?: AbortSignal | undefined
}

/** Writes that share one transaction, and so one fsync, at the most. */
const GROUP = 1024

interface Job {
  run: (writer: EngineWriter) => Promise<unknown>
  settle: { resolve: (value: unknown) => void; reject: (error: unknown) => void }
  /** Called when it can't be withdrawn any more. */
  taken?: () => void
}

type Outcome = { value: unknown } | { error: MnemError }

/**
 * Writes wait here for the store directory's lock, in the order in which they came, whatever memory they are of. All
 * that wait when the lock is there become one transaction: each is still a commit of its own, one fsync serves all.
 */
export class WriteQueue {
  private readonly engine: Engine
  private readonly finished: (stored: boolean, writes: number) => void
  private waiting: Job[] = []
  private draining: Promise<void> | undefined
  private closed = false

  /** `finished` is told after each transaction whether it was stored, and how many writes shared it. */
  constructor(engine: Engine, finished: (stored: boolean, writes: number) => void) {
    this.engine = engine
    this.finished = finished
  }

  /**
   * Run `run` in a transaction and resolve once that is on disk. `run` must throw before it writes: what it threw
   * is its own answer, and the transaction goes on with the others.
   */
  submit<T>(run: (writer: EngineWriter) => Promise<T>, { signal }: WriteControl = {}): Promise<T> {
    if (this.closed)
      return Promise.reject(new MnemError('shutting_down', 'The store is closing; open it again to write.'))
    if (signal?.aborted) return Promise.reject(cancelled())
    return new Promise<T>((resolve, reject) => {
      const job: Job = { run, settle: { resolve: resolve as (value: unknown) => void, reject } }
      this.waiting.push(job)
      if (signal !== undefined) this.heed(signal, job)
      this.draining ??= this.drain().finally(() => {
        this.draining = undefined
      })
    })
  }

  /** Refuse what comes from now on, and wait for what was taken. */
  async close(): Promise<void> {
    this.closed = true
    while (this.draining !== undefined) await this.draining
  }

  /** Withdraw the job when it is cancelled while it waits; once it is taken, it is made. */
  private heed(signal: AbortSignal, job: Job): void {
    const withdraw = () => {
      const index = this.waiting.indexOf(job)
      if (index === -1) return
      this.waiting.splice(index, 1)
      job.settle.reject(cancelled())
    }
    signal.addEventListener('abort', withdraw, { once: true })
    job.taken = () => signal.removeEventListener('abort', withdraw)
  }

  private async drain(): Promise<void> {
    while (this.waiting.length > 0) {
      // One turn of the event loop, so that writes which arrived together are taken together.
      await new Promise((resolve) => setImmediate(resolve))
      await this.transact(() => this.waiting.splice(0, GROUP))
    }
  }

  private async transact(take: () => Job[]): Promise<void> {
    let jobs: Job[] = []
    try {
      const outcomes = await this.engine.transact(async (writer) => {
        jobs = take()
        for (const job of jobs) job.taken?.()
        const done: Outcome[] = []
        for (const job of jobs) done.push(await attempt(job, writer))
        return done
      })
      this.finished(true, jobs.length)
      for (const [index, job] of jobs.entries()) settle(job, outcomes[index] as Outcome)
    } catch (error) {
      this.finished(false, jobs.length)
      if (jobs.length > 1) {
        // One of them may be to blame: each gets a transaction of its own.
        for (const job of jobs) await this.transact(() => [job])
        return
      }
      // The lock never came: all that have waited for it so long are answered.
      if (jobs.length === 0) jobs = this.waiting.splice(0)
      for (const job of jobs) job.settle.reject(error)
    }
  }
}

async function attempt(job: Job, writer: EngineWriter): Promise<Outcome> {
  try {
    return { value: await job.run(writer) }
  } catch (error) {
    if (error instanceof MnemError && error.kind !== 'store_io' && error.kind !== 'busy') return { error }
    throw error
  }
}

function settle(job: Job, outcome: Outcome): void {
  if ('error' in outcome) job.settle.reject(outcome.error)
  else job.settle.resolve(outcome.value)
}

function cancelled(): MnemError {
  return new MnemError('cancelled', 'The write was cancelled before its commit; nothing was stored.')
}
