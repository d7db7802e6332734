import { stat } from 'node:fs/promises'

const LOOK_MS = 1000

/**
 * Tells when one of some files has changed. Looks once a second rather than subscribe to events: a mounted secret is
 * changed by swapping a symbolic link somewhere above it, which no event on the file tells.
 */
export class WatchedFiles {
  private readonly files: readonly string[]
  private readonly onChange: () => void
  private seen: Promise<string>
  private readonly timer: NodeJS.Timeout

  constructor(files: readonly string[], onChange: () => void) {
    this.files = files
    this.onChange = onChange
    this.seen = this.look()
    this.timer = setInterval(() => void this.check(), LOOK_MS)
    this.timer.unref()
  }

  /** Look no more. */
  close(): void {
    clearInterval(this.timer)
  }

  private async check(): Promise<void> {
    const [before, now] = await Promise.all([this.seen, this.look()])
    if (before === now) return
    this.seen = Promise.resolve(now)
    this.onChange()
  }

  private async look(): Promise<string> {
    const stats = await Promise.all(this.files.map((file) => stat(file, { bigint: true }).catch(() => null)))
    return stats
      .map((found) =>
        found === null ? '-' : `${found.dev} ${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`,
      )
      .join('\n')
  }
}
