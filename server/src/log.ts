import { type Logger, pino, stdTimeFunctions } from 'pino'
import type { LogLevel } from './log-level.ts'
import type { LogSink } from './log-sink.ts'

export type Log = Logger

/** JSON lines for the sink. Names of memories may stand in them, content and tokens never. */
export function createLog(level: LogLevel, sink: Pick<LogSink, 'write'>): Log {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    sink,
  )
}
