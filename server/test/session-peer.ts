import { PassThrough } from 'node:stream'
import { createLog } from '../src/log.ts'
import { type EndReason, Session, type SessionOptions } from '../src/session/session.ts'
import { FakeStores } from './fake-stores.ts'
import { type Answer, HELLO, Inbox, notification, request } from './frames.ts'

/** A session in this process, and the peer that speaks to it. */
export class SessionPeer {
  readonly stores = new FakeStores()
  readonly input = new PassThrough()
  readonly output: PassThrough
  readonly inbox = new Inbox()
  readonly logLines: string[] = []
  readonly ended: Promise<EndReason>
  readonly session: Session

  constructor({
    output = new PassThrough(),
    ...change
  }: Partial<SessionOptions> & { output?: PassThrough } = {}) {
    this.output = output
    const ended = Promise.withResolvers<EndReason>()
    this.ended = ended.promise
    this.session = new Session({
      stores: this.stores,
      input: this.input,
      output,
      log: createLog('debug', { write: (line) => this.logLines.push(line) }),
      version: '1.2.3',
      readiness: () => ({ ready: true }),
      onEnd: ended.resolve,
      ...change,
    })
    this.session.listen()
  }

  /** Read the answers as they come. */
  read(): this {
    this.output.on('data', (chunk: Buffer) => this.inbox.push(chunk))
    return this
  }

  async hello(): Promise<this> {
    this.read()
    this.input.write(HELLO)
    await this.inbox.answer('hello')
    return this
  }

  /** Send requests in one piece; each is `[id, method, params]`. */
  send(...requests: Array<[id: string | number, method: string, params?: object]>): void {
    this.input.write(Buffer.concat(requests.map(([id, method, params]) => request(id, method, params))))
  }

  notify(method: string, params?: object): void {
    this.input.write(notification(method, params))
  }

  answer(id: string | number | null): Promise<Answer> {
    return this.inbox.answer(id)
  }

  async kind(id: string | number | null): Promise<string | undefined> {
    return (await this.inbox.answer(id)).error?.data.kind
  }
}
