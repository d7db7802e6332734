import type { z } from 'zod'
import type { ErrorKind } from './errors.ts'

/** What a token must allow: reads and export, writes, or what can't be taken back. */
export type Verb = 'read' | 'write' | 'admin'

/** One method of the protocol: its literal name, schemas, and what a reader must know. */
export interface Method<
  Name extends string = string,
  Params extends z.ZodType = z.ZodType,
  Result extends z.ZodType | null = z.ZodType | null,
> {
  readonly method: Name
  /** One sentence: what it does. */
  readonly doc: string
  /** Null: any token will do, also one without verbs. */
  readonly verb: Verb | null
  readonly params: Params
  /** Null for notifications, which are not answered. */
  readonly result: Result
  /** Kinds of error of its own, beside those that every request can have. */
  readonly errors: readonly ErrorKind[]
  readonly example: { readonly params: unknown; readonly result?: unknown }
}

/** Keep the literal types of a method's description. */
export function defineMethod<
  const Name extends string,
  Params extends z.ZodType,
  Result extends z.ZodType | null,
>(method: Method<Name, Params, Result>): Method<Name, Params, Result> {
  return method
}
