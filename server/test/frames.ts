/** What tests need to speak to the daemon without any code of the daemon. */

export interface Answer {
  jsonrpc: '2.0'
  id: string | number | null
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every method.
  result?: any
  error?: {
    code: number
    message: string
    data: { kind: string; retryable: boolean; [fact: string]: unknown }
  }
}

/** One frame around this body. */
export function frame(body: string | Buffer): Buffer {
  const bytes = Buffer.from(body)
  return Buffer.concat([Buffer.from(`Content-Length: ${bytes.length}\r\n\r\n`), bytes])
}

export function request(id: unknown, method: string, params?: unknown): Buffer {
  return frame(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
}

export function notification(method: string, params?: unknown): Buffer {
  return frame(JSON.stringify({ jsonrpc: '2.0', method, params }))
}

export const HELLO = request('hello', 'initialize', { protocol: 1, client: { name: 'test', version: '0' } })

/** Takes frames apart; throws when anything else stands between them. */
export class FrameParser {
  private rest: Buffer = Buffer.alloc(0)

  push(chunk: Buffer): Array<{ answer: Answer; text: string }> {
    this.rest = Buffer.concat([this.rest, chunk])
    const found: Array<{ answer: Answer; text: string }> = []
    for (;;) {
      const end = this.rest.indexOf('\r\n\r\n')
      if (end === -1) break
      const header = this.rest.toString('latin1', 0, end)
      const length = /^Content-Length: (\d+)$/.exec(header)
      if (length === null) throw new Error(`not a frame: ${JSON.stringify(header)}`)
      const from = end + 4
      const to = from + Number(length[1])
      if (this.rest.length < to) break
      const text = this.rest.toString('utf8', from, to)
      found.push({ answer: JSON.parse(text), text })
      this.rest = this.rest.subarray(to)
    }
    return found
  }

  get isBetweenFrames(): boolean {
    return this.rest.length === 0
  }
}

/** Collects answers, and lets tests wait for the one they want. */
export class Inbox {
  readonly answers: Answer[] = []
  readonly texts: string[] = []
  private readonly parser = new FrameParser()
  private waiters: Array<() => void> = []
  private closed = false

  push(chunk: Buffer): void {
    for (const { answer, text } of this.parser.push(chunk)) {
      this.answers.push(answer)
      this.texts.push(text)
    }
    this.wake()
  }

  close(): void {
    this.closed = true
    this.wake()
  }

  get isBetweenFrames(): boolean {
    return this.parser.isBetweenFrames
  }

  /** The answer to this id. */
  async answer(id: string | number | null): Promise<Answer> {
    await this.until(() => this.answers.some((answer) => answer.id === id))
    return this.answers.find((answer) => answer.id === id) as Answer
  }

  /** Resolves when so many answers are there. */
  async count(count: number): Promise<Answer[]> {
    await this.until(() => this.answers.length >= count)
    return this.answers
  }

  private async until(isThere: () => boolean): Promise<void> {
    while (!isThere()) {
      if (this.closed) throw new Error(`the output ended with ${this.answers.length} answers`)
      await new Promise<void>((resolve) => this.waiters.push(resolve))
    }
  }

  private wake(): void {
    const waiters = this.waiters
    this.waiters = []
    for (const resolve of waiters) resolve()
  }
}

export function textItem(text: string) {
  return { content: { type: 'text', text }, mime_type: 'text/plain' }
}
