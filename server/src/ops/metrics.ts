import type { Stores, TransactionInfo } from '@mnem/core'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Address } from '../listen/address.ts'
import type { Ending } from '../listen/connection.ts'
import type { AnsweredRequest } from '../session/session.ts'

type Transport = Address['transport']

/** Seconds, from a read that finds nothing new to a write that waits out its bound. */
const SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10]
const GROUP = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]

/**
 * What operators see. Labels are methods, outcomes, transports and reasons of this program's own lists, never a name that
 * a client gives, so that their number is fixed.
 */
export class Metrics {
  private readonly registry = new Registry()
  private readonly requests: Counter<'method' | 'outcome'>
  private readonly latency: Histogram<'method'>
  private readonly commit: Histogram
  private readonly group: Histogram
  private readonly connections: Gauge<'transport'>
  private readonly closed: Counter<'reason'>
  private readonly refused: Counter<'reason'>

  constructor(version: string) {
    const registers = [this.registry]
    collectDefaultMetrics({ register: this.registry })
    this.requests = new Counter({
      name: 'mnem_requests_total',
      help: 'Requests answered.',
      labelNames: ['method', 'outcome'],
      registers,
    })
    this.latency = new Histogram({
      name: 'mnem_request_seconds',
      help: 'Seconds from taking a request to its answer.',
      labelNames: ['method'],
      buckets: SECONDS,
      registers,
    })
    this.commit = new Histogram({
      name: 'mnem_commit_seconds',
      help: 'Seconds of a transaction’s COMMIT, which is mostly its fsync.',
      buckets: SECONDS,
      registers,
    })
    this.group = new Histogram({
      name: 'mnem_group_writes',
      help: 'Writes that shared one transaction.',
      buckets: GROUP,
      registers,
    })
    this.connections = new Gauge({
      name: 'mnem_connections',
      help: 'Connections open now.',
      labelNames: ['transport'],
      registers,
    })
    this.closed = new Counter({
      name: 'mnem_connections_closed_total',
      help: 'Connections closed, by why.',
      labelNames: ['reason'],
      registers,
    })
    this.refused = new Counter({
      name: 'mnem_connections_refused_total',
      help: 'Connections that never became one.',
      labelNames: ['reason'],
      registers,
    })
    new Gauge({
      name: 'mnem_build_info',
      help: 'Always 1; the version is in the label.',
      labelNames: ['version'],
      registers,
    }).set({ version }, 1)
  }

  /** Have the store's own figures read whenever metrics are asked for. */
  watchStore(stores: Pick<Stores, 'openMemories' | 'storeBytes'>, isReady: () => boolean): void {
    const registers = [this.registry]
    const gauge = (name: string, help: string, value: () => number) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(value())
        },
      })
    gauge('mnem_open_memories', 'Memories whose head is kept at hand.', () => stores.openMemories())
    gauge('mnem_store_bytes', 'Bytes of the store’s files.', () => stores.storeBytes())
    gauge('mnem_ready', 'Whether the store can be written to: 1 or 0.', () => (isReady() ? 1 : 0))
  }

  request({ method, outcome, ms }: AnsweredRequest): void {
    this.requests.inc({ method, outcome })
    this.latency.observe({ method }, ms / 1000)
  }

  transaction({ writes, commitMs }: TransactionInfo): void {
    this.commit.observe(commitMs / 1000)
    this.group.observe(writes)
  }

  connectionOpened(transport: Transport): void {
    this.connections.inc({ transport })
  }

  connectionClosed(transport: Transport, reason: Ending): void {
    this.connections.dec({ transport })
    this.closed.inc({ reason })
  }

  connectionRefused(reason: 'too_many' | 'tls_handshake'): void {
    this.refused.inc({ reason })
  }

  get contentType(): string {
    return this.registry.contentType
  }

  /** All of them in Prometheus' text format. */
  text(): Promise<string> {
    return this.registry.metrics()
  }
}
