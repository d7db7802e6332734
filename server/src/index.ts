export type { Log } from './log.ts'
export { createLog } from './log.ts'
export { type EndReason, LIMITS, Session, type SessionOptions } from './session/session.ts'
