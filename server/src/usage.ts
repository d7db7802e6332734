/** A command line or configuration that can't be followed; `message` is one sentence that says what to do. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
