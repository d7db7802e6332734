import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { ListenError } from '../listen/listen-error.ts'
import type { Readiness } from './health.ts'
import type { Metrics } from './metrics.ts'

/** Connections at once; probes and scrapers need no more. */
const CONNECTIONS = 64
const REQUEST_MS = 5000

/** Answers operators over HTTP: `/healthz`, `/readyz`, `/metrics`. Nothing here tells of memories or tokens. */
export class OperationsServer {
  private readonly server: Server

  private constructor(server: Server) {
    this.server = server
  }

  /** Throws `ListenError`. */
  static open(
    { host, port }: { host: string; port: number },
    { readiness, metrics }: { readiness: () => Readiness; metrics: Metrics },
  ): Promise<OperationsServer> {
    const server = createServer((request, response) => {
      void answer(request, response, readiness, metrics)
    })
    server.maxConnections = CONNECTIONS
    server.requestTimeout = REQUEST_MS
    server.headersTimeout = REQUEST_MS
    return new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        reject(
          new ListenError(
            `Can't answer HTTP at ${host}:${port} (${error.code ?? error.message}); give another --http.`,
          ),
        ),
      )
      server.listen({ host, port }, () => resolve(new OperationsServer(server)))
    })
  }

  /** The port that was taken. */
  get port(): number {
    const address = this.server.address()
    return address === null || typeof address === 'string' ? 0 : address.port
  }

  close(): void {
    this.server.close()
    this.server.closeAllConnections()
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  readiness: () => Readiness,
  metrics: Metrics,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return send(response, 405, 'Only GET and HEAD.\n', { allow: 'GET, HEAD' })
  switch (request.url?.split('?', 1)[0]) {
    case '/healthz':
      return send(response, 200, 'ok\n')
    case '/readyz': {
      const { ready, reason } = readiness()
      return ready ? send(response, 200, 'ready\n') : send(response, 503, `not ready: ${reason}\n`)
    }
    case '/metrics':
      return send(response, 200, await metrics.text(), { 'content-type': metrics.contentType })
    default:
      return send(response, 404, 'There are /healthz, /readyz and /metrics.\n')
  }
}

function send(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    ...headers,
  })
  response.end(body)
}
