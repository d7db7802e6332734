import type { Importer } from '@mnem/core'
import type { StoresApi } from '../handlers/handler.ts'
import { failure } from './failure.ts'

/** Imports of one connection at once. */
const TOGETHER = 4

interface Running {
  importer: Importer
  next: number
}

/** A piece of an export. */
interface Part {
  part: number
  text: string
  force: boolean | undefined
  isLast: boolean
}

/** The imports that a connection has begun: each takes its parts in their order, and ends with the connection. */
export class Imports {
  private readonly stores: StoresApi
  private readonly running = new Map<string, Running>()

  constructor(stores: StoresApi) {
    this.stores = stores
  }

  /** Take a part; what the import made, once it was the last. */
  async take(
    memory: string,
    { part, text, force, isLast }: Part,
  ): Promise<{ commit: string; commits: number } | undefined> {
    const running = part === 0 ? await this.begin(memory, force) : this.running.get(memory)
    if (running === undefined || running.next !== part)
      throw failure(
        'conflict',
        'Parts of an import come one after another, from 0, on one connection; begin again with part 0.',
        { reason: 'import_part' },
      )
    running.next++
    try {
      await running.importer.take(text)
      if (!isLast) return undefined
      const made = await running.importer.finish()
      this.running.delete(memory)
      return made
    } catch (error) {
      await this.abort(memory)
      throw error
    }
  }

  /** Leave nothing of them behind. */
  async close(): Promise<void> {
    for (const memory of this.running.keys()) await this.abort(memory)
  }

  private async begin(memory: string, force: boolean | undefined): Promise<Running> {
    await this.abort(memory)
    if (this.running.size >= TOGETHER)
      throw failure(
        'too_large',
        `A connection has at most ${TOGETHER} imports under way; finish one first.`,
        {
          limit: TOGETHER,
        },
      )
    const running = { importer: this.stores.beginImport(memory, { force }), next: 0 }
    this.running.set(memory, running)
    return running
  }

  private async abort(memory: string): Promise<void> {
    const running = this.running.get(memory)
    this.running.delete(memory)
    await running?.importer.abort()
  }
}
