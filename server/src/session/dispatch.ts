import { MnemError } from '@mnem/core'
import { METHODS, problemOf } from '@mnem/protocol'
import type { z } from 'zod'
import { type Access, refusal } from '../access/access.ts'
import type { Handler, HandlerContext } from '../handlers/handler.ts'
import { HANDLERS } from '../handlers/index.ts'
import { cancelled, failure } from './failure.ts'
import { Order } from './order.ts'
import type { ReadGate } from './read-gate.ts'
import type { Semaphore } from './semaphore.ts'

/** What is the same for all requests of a connection. */
type ConnectionContext = Pick<HandlerContext, 'stores' | 'readiness' | 'imports' | 'backupPath'>

/** Finds the handler of a method, checks what it is given and whether it is allowed, and runs it in its turn. */
export class Dispatcher {
  private readonly context: ConnectionContext
  private readonly gate: ReadGate
  private readonly long: Semaphore
  private readonly order = new Order()

  constructor(context: ConnectionContext, gate: ReadGate, long: Semaphore) {
    this.context = context
    this.gate = gate
    this.long = long
  }

  /**
   * Answer a request. Everything up to the call of the store happens before this returns, so that writes reach the
   * store in the order in which they came. Throws or rejects with a `ResponseError` or a `MnemError`.
   */
  dispatch(method: string, params: unknown, signal: AbortSignal, access: Access): Promise<unknown> {
    const handler = HANDLERS.get(method)
    if (handler === undefined) throw notServed(method)
    const checked = check(handler.method.params, params)
    const memory = memoryOf(checked)
    const refused = refusal(access, handler.method.verb, memory)
    if (refused !== undefined) throw failure('unauthorized', refused)
    if (signal.aborted) throw cancelled()
    const asked = handler.turn === 'write' ? pinned(checked, access) : checked
    const run = () => handler.run({ ...this.context, signal, access }, asked as never)
    return this.inTurn(handler, memory, run, signal)
  }

  private inTurn(
    { turn }: Handler,
    memory: string | undefined,
    run: () => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<unknown> {
    if (turn === 'now') return run()
    if (turn === 'long') return this.long.run(() => (signal.aborted ? Promise.reject(cancelled()) : run()))
    if (turn === 'write' && memory !== undefined) return this.order.write(memory, run, signal)
    const read = () => this.gate.run(() => (signal.aborted ? Promise.reject(cancelled()) : run()))
    return memory === undefined ? this.order.readAll(read) : this.order.read(memory, read, signal)
  }
}

/** The checked params, or `invalid_params` with the path of what is wrong. */
export function check<Schema extends z.ZodType>(schema: Schema, params: unknown): z.infer<Schema> {
  // JSON-RPC lets a request without params leave them out.
  const result = schema.safeParse(params === undefined ? {} : params)
  if (result.success) return result.data
  const { path, reason } = problemOf(result.error)
  throw failure('invalid_params', `${path === '' ? 'params' : path}: ${reason}`, { path, reason })
}

function memoryOf(params: unknown): string | undefined {
  return (params as { memory?: string } | undefined)?.memory
}

/** A write with the author that the token stands for, whatever the client said: `why` must be able to trust it. */
function pinned(params: unknown, { author }: Access): unknown {
  return author === undefined ? params : { ...(params as object), author }
}

function notServed(method: string) {
  const known = METHODS.get(method)
  if (known === undefined || known.method.result === null) {
    return failure('method_not_found', 'There is no such method; docs/protocol.md lists them all.')
  }
  return failure(
    'method_not_found',
    `This version does not serve ${method} yet; update mnem-sidecar when it does.`,
  )
}

/** Whether an error says that its request was cancelled. */
export function isCancellation(error: unknown): boolean {
  if (error instanceof MnemError) return error.kind === 'cancelled'
  return error instanceof DOMException && error.name === 'AbortError'
}
