import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls'
import { type Address, showAddress } from './address.ts'
import { ListenError } from './listen-error.ts'
import type { TlsFiles } from './tls-files.ts'
import { listenOnUnixSocket } from './unix-socket.ts'

export interface ListenerOptions {
  /** File mode of a Unix socket. */
  socketMode: number
  /** For a `tls` address. */
  tls: TlsFiles | undefined
  /** Milliseconds that a TLS handshake may take. */
  handshakeMs: number
  /** A connection came in, over TLS before its handshake. False: there are far too many, and it was closed. */
  admit: (socket: Socket) => boolean
  /** A connection is ready to be spoken on: at once, or after its TLS handshake. */
  accept: (socket: Socket) => void
  /** A TLS handshake failed; its connection is gone. */
  handshakeFailed: (code: string) => void
}

/** Listens at one address. */
export class Listener {
  private readonly server: Server | TlsServer
  private readonly given: Address

  private constructor(server: Server | TlsServer, given: Address) {
    this.server = server
    this.given = given
  }

  /** Throws `ListenError`. */
  static async open(address: Address, options: ListenerOptions): Promise<Listener> {
    const { admit, accept } = options
    let server: Server
    if (address.transport === 'tls') server = tlsServer(options)
    else
      server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true }, (socket) => {
        if (admit(socket)) accept(socket)
      })
    if (address.transport === 'unix') await listenOnUnixSocket(server, address.path, options.socketMode)
    else await listenOnPort(server, address)
    return new Listener(server, address)
  }

  /** Where it listens, with the port that was chosen where 0 was given. */
  get address(): Address {
    if (this.given.transport === 'unix') return this.given
    const bound = this.server.address()
    return bound === null || typeof bound === 'string' ? this.given : { ...this.given, port: bound.port }
  }

  /** Use these files for handshakes from now on. */
  renew({ cert, key, ca }: TlsFiles): void {
    if ('setSecureContext' in this.server)
      this.server.setSecureContext({ cert, key, ...(ca === undefined ? {} : { ca }) })
  }

  /** Accept no more; connections that there are stay. */
  close(): void {
    this.server.close()
  }
}

function tlsServer({ tls, handshakeMs, admit, accept, handshakeFailed }: ListenerOptions): TlsServer {
  if (tls === undefined) throw new TypeError('a tls: address without certificate')
  const server = createTlsServer({
    cert: tls.cert,
    key: tls.key,
    ...(tls.ca === undefined ? {} : { ca: tls.ca, requestCert: true, rejectUnauthorized: true }),
    handshakeTimeout: handshakeMs,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    minVersion: 'TLSv1.2',
  })
  server.prependListener('connection', (socket: Socket) => void admit(socket))
  server.on('secureConnection', (socket: TLSSocket) => accept(socket))
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    socket.destroy()
    handshakeFailed(error.code ?? 'unknown')
  })
  return server
}

function listenOnPort(server: Server, address: Extract<Address, { port: number }>): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      const why: Record<string, string> = {
        EADDRINUSE: 'another process listens there; end that one, or give another port',
        EADDRNOTAVAIL: 'this machine has no such address; give one of its own',
        EACCES: 'this user may not listen on that port; give one from 1024',
        ENOTFOUND: 'there is no such host; give an address of this machine',
      }
      reject(
        new ListenError(
          `Can't listen at ${showAddress(address)}: ${why[error.code ?? ''] ?? error.code ?? error.message}.`,
        ),
      )
    }
    server.once('error', fail)
    server.listen({ host: address.host, port: address.port }, () => {
      server.off('error', fail)
      resolve()
    })
  })
}
