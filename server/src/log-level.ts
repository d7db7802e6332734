/** Levels that `--log-level` and `MNEM_LOG` know, most talkative first. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

export type LogLevel = (typeof LOG_LEVELS)[number]

/** Without any wish: at `info` a run writes one line when it starts and one when it stops. */
export const DEFAULT_LOG_LEVEL: LogLevel = 'info'

export function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text)
}
