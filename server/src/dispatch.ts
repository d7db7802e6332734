import { MnemError } from '@mnem/core'
import { METHODS, problemOf } from '@mnem/protocol'
import type { z } from 'zod'
import { cancelled, failure } from './failure.ts'
import type { Handler, StoresApi } from './handlers/handler.ts'
import { HANDLERS } from './handlers/index.ts'
import { Order } from './order.ts'
import type { ReadGate } from './read-gate.ts'

/** Finds the handler of a method, checks what it is given, and runs it in its turn. */
export class Dispatcher {
  private readonly stores: StoresApi
  private readonly gate: ReadGate
  private readonly order = new Order()

  constructor(stores: StoresApi, gate: ReadGate) {
    this.stores = stores
    this.gate = gate
  }

  /**
   * Answer a request. Everything up to the call of the store happens before this returns, so that writes reach the
   * store in the order in which they came. Throws or rejects with a `ResponseError` or a `MnemError`.
   */
  dispatch(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    const handler = HANDLERS.get(method)
    if (handler === undefined) throw notServed(method)
    const checked = check(handler.method.params, params)
    if (signal.aborted) throw cancelled()
    const run = () => handler.run({ stores: this.stores, signal }, checked as never)
    return this.inTurn(handler, memoryOf(checked), run, signal)
  }

  private inTurn(
    { turn }: Handler,
    memory: string | undefined,
    run: () => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<unknown> {
    if (turn === 'now') return run()
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
