/** An address that can't be listened on; `message` is a sentence that names it and says what to do. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
}
