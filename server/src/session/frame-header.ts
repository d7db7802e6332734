/** Longest header block that is read, in bytes. */
export const HEADER_BYTES = 4096

/** The framing can't be trusted any more; `message` says what is wrong with it, without quoting it. */
export class FramingError extends Error {
  override readonly name = 'FramingError'
}

export interface Header {
  /** Bytes of the body. */
  contentLength: number
  /** Bytes of the header block, its empty line too. */
  size: number
}

const END = '\r\n\r\n'
const USUAL = /^Content-Length: (\d{1,15})$/
const LENGTH = /^content-length[ \t]*:[ \t]*(\d{1,15})[ \t]*$/i
const TYPE = /^content-type[ \t]*:(.*)$/i
const CHARSET = /charset[ \t]*=[ \t]*"?([^";\s]*)"?/i

/** What a line that has not wholly arrived may look like so far. */
const LENGTH_SO_FAR = /^content-length[ \t]*:[ \t]*\d{0,15}[ \t]*\r?$/i
const TYPE_SO_FAR = /^content-type[ \t]*:[^\r\n]*\r?$/i

/**
 * Read the header block at the start of `bytes`; undefined when more bytes are needed. What can't become a header any
 * more is refused at once, not when its end arrives: a peer that speaks another framing never sends that end.
 *
 * Throws `FramingError`.
 */
export function readHeader(bytes: Buffer): Header | undefined {
  const end = bytes.indexOf(END)
  if (end === -1 || end + END.length > HEADER_BYTES) {
    refuseEarly(bytes)
    return undefined
  }
  const size = end + END.length
  const block = bytes.toString('latin1', 0, end)
  const usual = USUAL.exec(block)
  if (usual !== null) return { contentLength: Number(usual[1]), size }
  let contentLength: number | undefined
  for (const line of block.split('\r\n')) {
    const length = readLine(line)
    if (length === undefined) continue
    if (contentLength !== undefined) throw new FramingError('Content-Length stands twice in the header')
    contentLength = length
  }
  if (contentLength === undefined) throw new FramingError('the header has no Content-Length')
  return { contentLength, size }
}

/** The length that a whole line gives; undefined for Content-Type. */
function readLine(line: string): number | undefined {
  const length = LENGTH.exec(line)
  if (length !== null) return Number(length[1])
  const type = TYPE.exec(line)
  if (type === null) {
    throw new FramingError('a header line is neither "Content-Length: <bytes>" nor "Content-Type: …"')
  }
  const charset = CHARSET.exec(type[1] ?? '')
  if (charset !== null && !/^utf-?8$/i.test(charset[1] ?? '')) {
    throw new FramingError('Content-Type names a charset other than utf-8')
  }
  return undefined
}

function refuseEarly(bytes: Buffer): void {
  if (bytes.length >= HEADER_BYTES) throw new FramingError(`the header is longer than ${HEADER_BYTES} bytes`)
  const lines = bytes.toString('latin1').split('\r\n')
  const last = lines.pop() ?? ''
  for (const line of lines) readLine(line)
  if (LENGTH_SO_FAR.test(last) || TYPE_SO_FAR.test(last) || last === '\r') return
  const begun = last.toLowerCase()
  if ('content-length:'.startsWith(begun) || 'content-type:'.startsWith(begun)) return
  throw new FramingError('the frame does not begin with a header "Content-Length: <bytes>"')
}
