/** One at a time, in the order of asking. */
export class Mutex {
  private last: Promise<unknown> = Promise.resolve()

  /** Run `work` when it is its turn. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(work)
    this.last = turn.catch(() => undefined)
    return turn
  }

  /** Wait for a turn that lasts until the function given back is called. */
  acquire(): Promise<() => void> {
    return new Promise((resolve) => {
      this.run(() => new Promise<void>((release) => resolve(release)))
    })
  }
}
