import { isIPv4, isIPv6 } from 'node:net'

/** Where a server listens, or a client connects. */
export type Address =
  | { transport: 'unix'; path: string }
  | { transport: 'tcp' | 'tls'; host: string; port: number }

/** Longest path of a Unix socket in bytes: the kernel's field less its closing zero. */
const PATH_BYTES = process.platform === 'darwin' ? 103 : 107

/** What stands in an address that can't be read. */
export class AddressError extends Error {
  override readonly name = 'AddressError'
}

/**
 * Read `unix:PATH`, `tcp:HOST:PORT` or `tls:HOST:PORT`, with `//` after the first colon or without, so that what a client
 * calls its endpoint can be given too. Throws `AddressError`; its message is the rest of a sentence about the text.
 */
export function readAddress(text: string): Address {
  const [, transport, rest] = /^(unix|tcp|tls):(?:\/\/)?(.*)$/s.exec(text) ?? []
  if (transport === undefined || rest === undefined) {
    throw new AddressError('is no address; give unix:PATH, tcp:HOST:PORT or tls:HOST:PORT')
  }
  if (transport === 'unix') return { transport, path: checkPath(rest) }
  return { transport: transport as 'tcp' | 'tls', ...readHostPort(rest) }
}

/** Read `HOST:PORT`, an IPv6 host in brackets. Throws `AddressError`. */
export function readHostPort(text: string): { host: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text) ?? []
  const host = bracketed ?? plain
  if (host === undefined || digits === undefined || (bracketed !== undefined && !isIPv6(bracketed))) {
    throw new AddressError('has no HOST:PORT, such as 127.0.0.1:7777 or [::1]:7777')
  }
  if (host === '')
    throw new AddressError('has no host; give 127.0.0.1 for this machine, or 0.0.0.0 for all networks')
  const port = Number(digits)
  if (port > 65_535) throw new AddressError('has a port over 65535')
  return { host, port }
}

function checkPath(path: string): string {
  if (path === '' || path.includes('\0')) throw new AddressError('has no path of a socket behind unix:')
  const bytes = Buffer.byteLength(path)
  if (bytes > PATH_BYTES) {
    throw new AddressError(
      `has a path of ${bytes} bytes, and a Unix socket's has at most ${PATH_BYTES}; choose a shorter one`,
    )
  }
  return path
}

/** The address as it is given. */
export function showAddress(address: Address): string {
  if (address.transport === 'unix') return `unix:${address.path}`
  const host = isIPv6(address.host) ? `[${address.host}]` : address.host
  return `${address.transport}:${host}:${address.port}`
}

/** Whether only this machine can reach it. */
export function isLocal(address: Address): boolean {
  return address.transport === 'unix' || isLoopback(address.host)
}

/** Whether a host is this machine's own loopback. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}
