/** What the commands of this checkout tell a person. Runs on Node 20, before anything is installed. */

/** A failure that a person can mend: one sentence, no trace. */
export class SetupError extends Error {}

/** One line about what goes on. */
export function say(text) {
  process.stdout.write(`${text}\n`)
}

/** End the process with a sentence instead of a trace. */
export function fail(error) {
  const text = error instanceof SetupError ? error.message : (error?.stack ?? String(error))
  process.stderr.write(`\n${text}\n`)
  process.exit(1)
}
