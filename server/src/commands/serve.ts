import { resolve } from 'node:path'
import { openStores, type Stores } from '@mnem/core'
import type { Limits } from '@mnem/protocol'
import { readTokenFile } from '../access/token-file.ts'
import { Tokens } from '../access/tokens.ts'
import type { Config } from '../config/options.ts'
import { type Configuration, type Flags, readConfiguration } from '../config/read.ts'
import { showConfiguration } from '../config/show.ts'
import { Lifetime } from '../lifetime.ts'
import { type Address, isLocal, readAddress, showAddress } from '../listen/address.ts'
import { Connections } from '../listen/connections.ts'
import { Listener } from '../listen/listener.ts'
import { readTlsFiles, type TlsFiles, tlsFileNames } from '../listen/tls-files.ts'
import { WatchedFiles } from '../listen/watched-files.ts'
import { createLog, type Log } from '../log.ts'
import { LogSink } from '../log-sink.ts'
import { Health } from '../ops/health.ts'
import { OperationsServer } from '../ops/http.ts'
import { Metrics } from '../ops/metrics.ts'
import { notifyManager } from '../ops/notify.ts'
import { LIMITS } from '../session/session.ts'
import { UsageError } from '../usage.ts'
import { VERSION } from '../version.ts'
import { orComplain, watchForBugs } from './ending.ts'

/** Of the time to drain, what is kept for closing the store after the last answer. */
const CLOSING_SHARE = 0.2

/** Serve many clients over sockets until a signal ends it. Ends the process when that is over. */
export async function runServe(flags: Flags, env: NodeJS.ProcessEnv): Promise<void> {
  let configuration: Configuration
  try {
    configuration = readConfiguration(flags, env)
  } catch (error) {
    return orComplain(error)
  }
  if (flags['print-config'] === true) {
    process.stdout.write(showConfiguration(configuration))
    return
  }
  const sink = new LogSink(2)
  const log = createLog(configuration.config.log_level, sink)
  try {
    await new Serving(configuration, log, sink).start()
  } catch (error) {
    orComplain(error)
    process.exit()
  }
}

/** Everything that a running server is made of. */
class Serving {
  private readonly config: Config
  private readonly strangers: readonly string[]
  private readonly log: Log
  private readonly sink: LogSink
  private readonly metrics = new Metrics(VERSION)
  private listeners: Listener[] = []
  private watches: WatchedFiles[] = []
  private http: OperationsServer | undefined

  constructor({ config, strangers }: Configuration, log: Log, sink: LogSink) {
    this.config = config
    this.strangers = strangers
    this.log = log
    this.sink = sink
  }

  /** Throws `UsageError`, `MnemError` or `ListenError` where it can't serve. */
  async start(): Promise<void> {
    const { config, log, metrics } = this
    const { store, addresses } = this.check()
    const tokens = config.token_file === undefined ? undefined : new Tokens(readTokenFile(config.token_file))
    const tls = addresses.some(({ transport }) => transport === 'tls') ? readTlsFiles(config) : undefined
    const limits = limitsOf(config)
    const stores = await openStores(store, {
      busyTimeout: config.busy_timeout,
      itemBytes: limits.item_bytes,
      listingBytes: Math.floor(limits.frame_bytes * 0.75),
      onTransaction: (transaction) => metrics.transaction(transaction),
    })
    try {
      await this.open(stores, limits, addresses, tokens, tls)
    } catch (error) {
      // Nothing of a server that could not start stays behind: no socket file, no open store.
      for (const listener of this.listeners) listener.close()
      this.http?.close()
      await stores.close()
      throw error
    }
    const listen = this.listeners.map(({ address }) => showAddress(address))
    log.info({ listen, http_port: this.http?.port, tokens: tokens?.size }, 'ready')
    notifyManager('ready', log)
  }

  private async open(
    stores: Stores,
    limits: Limits,
    addresses: readonly Address[],
    tokens: Tokens | undefined,
    tls: TlsFiles | undefined,
  ): Promise<void> {
    const { config, log, metrics } = this
    const health = new Health(stores)
    const readiness = () => health.readiness()
    metrics.watchStore(stores, () => readiness().ready)
    const connections = new Connections({
      config,
      limits,
      stores,
      readiness,
      metrics,
      log,
      version: VERSION,
      tokens,
    })
    const lifetime = this.lifetime(stores, connections, health)
    watchForBugs(log, () => lifetime.end('failure'))
    lifetime.watch()
    log.info({ version: VERSION, node: process.versions.node, store: config.store }, 'started')
    await this.listen(addresses, tls, connections)
    if (config.http !== undefined)
      this.http = await OperationsServer.open(config.http, { readiness, metrics })
    this.watch(connections)
  }

  /** Refuse what would be unsafe or can't work, and warn of what may not be meant. */
  private check(): { store: string; addresses: Address[] } {
    const { config, log } = this
    if (config.store === undefined) throw new UsageError('Say where the memories are kept: --store DIR.')
    if (config.store.includes('://'))
      throw new UsageError('This version keeps its stores in directories; give --store DIR.')
    if (config.listen === undefined)
      throw new UsageError('Say where to listen: --listen unix:PATH or --listen tcp:HOST:PORT.')
    const addresses = config.listen.map(readAddress)
    for (const address of addresses) {
      if (isLocal(address)) continue
      if (config.token_file === undefined)
        throw new UsageError(
          `${showAddress(address)} can be reached from other machines, and there are no tokens: give --token-file, or listen on 127.0.0.1.`,
        )
      if (address.transport === 'tcp')
        log.warn(
          { listen: showAddress(address) },
          'no TLS: tokens and memories cross the network in the clear; use a tls: address, or a network that nobody else can read',
        )
    }
    for (const name of this.strangers)
      log.warn({ name }, 'a variable that begins as ours do, and is none of them')
    return { store: resolve(config.store), addresses }
  }

  private async listen(
    addresses: readonly Address[],
    tls: TlsFiles | undefined,
    connections: Connections,
  ): Promise<void> {
    for (const address of addresses) {
      const listener = await Listener.open(address, {
        socketMode: this.config.socket_mode,
        tls,
        handshakeMs: this.config.initialize_timeout,
        admit: (socket) => connections.admit(socket),
        accept: (socket) => connections.accept(socket, address.transport),
        handshakeFailed: (code) => connections.handshakeFailed(code),
      })
      this.listeners.push(listener)
    }
  }

  /** Follow the files that may change while it runs. */
  private watch(connections: Connections): void {
    const { token_file } = this.config
    if (token_file !== undefined)
      this.watches.push(new WatchedFiles([token_file], () => this.renewTokens(connections)))
    if (this.usesTls) this.watches.push(new WatchedFiles(tlsFileNames(this.config), () => this.renewTls()))
  }

  private get usesTls(): boolean {
    return this.listeners.some(({ address }) => address.transport === 'tls')
  }

  /** What can't be read is told, and what was in force before stays so. */
  private renewTokens(connections: Connections): void {
    const { token_file } = this.config
    if (token_file === undefined) return
    this.renew('tokens', () => {
      const tokens = new Tokens(readTokenFile(token_file))
      connections.renewTokens(tokens)
      this.log.info({ tokens: tokens.size }, 'tokens read again')
    })
  }

  private renewTls(): void {
    if (!this.usesTls) return
    this.renew('certificates', () => {
      const files = readTlsFiles(this.config)
      for (const listener of this.listeners) listener.renew(files)
      this.log.info('certificates read again')
    })
  }

  private renew(what: string, work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      this.log.error({ what, why: error.message }, 'could not be read again; the ones before stay in force')
    }
  }

  private lifetime(stores: Stores, connections: Connections, health: Health): Lifetime {
    const { log, sink } = this
    const { drain } = this.config
    return new Lifetime({
      drainMs: drain,
      onHangup: () => {
        this.renewTokens(connections)
        this.renewTls()
      },
      finish: async () => {
        notifyManager('stopping', log)
        health.stop()
        for (const listener of this.listeners) listener.close()
        for (const watch of this.watches) watch.close()
        await connections.stop(drain * (1 - CLOSING_SHARE))
        await stores.close()
        this.http?.close()
      },
      leave: (code, reason, drained) => {
        log.info({ reason, drained, code }, 'stopped')
        sink.flush()
        process.exit(code)
      },
    })
  }
}

/** What clients are told: an item and its JSON must fit into a message with room to spare. */
function limitsOf({ frame_bytes }: Config): Limits {
  return { ...LIMITS, frame_bytes, item_bytes: Math.min(LIMITS.item_bytes, Math.floor(frame_bytes / 4)) }
}
