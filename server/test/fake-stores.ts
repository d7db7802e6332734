import { JsonText, MnemError } from '@mnem/core'
import type { StoresApi } from '../src/handlers/handler.ts'

const ID = 'a'.repeat(64)

/** A call of the store that the test settles when it likes. */
export interface Call {
  method: string
  request: unknown
  signal: AbortSignal | undefined
  resolve: (value?: unknown) => void
  reject: (error: unknown) => void
}

/** A store that notes what is called and in which order, and answers when the test says so. */
export class FakeStores implements StoresApi {
  readonly calls: Call[] = []
  private waiters: Array<() => void> = []

  /** Methods called so far, in order. */
  get called(): string[] {
    return this.calls.map(({ method, request }) => {
      const { memory } = (request ?? {}) as { memory?: string }
      return memory === undefined ? method : `${method} ${memory}`
    })
  }

  /** Resolves with the call of this number, once it is made. */
  async nth(index: number): Promise<Call> {
    while (this.calls.length <= index) await new Promise<void>((resolve) => this.waiters.push(resolve))
    return this.calls[index] as Call
  }

  add = this.method<'add'>('add', { commit: ID, ids: ['m:0000000000'] })
  clear = this.method<'clear'>('clear', { commit: ID, forgotten: 1 })
  forget = this.method<'forget'>('forget', { commit: ID, forgotten: 1 })
  listing = this.method<'listing'>('listing', {
    commit: null,
    epoch: 0,
    branch: 'main',
    count: 0,
    mode: 'full',
    items: [],
  })
  commit = this.method<'commit'>('commit', null)
  log = this.method<'log'>('log', { commits: [] })
  why = this.method<'why'>('why', {
    commit: { id: ID, parents: [], state: ID, message: '', author: '', time: 0 },
    item: new JsonText('{}'),
  })
  diff = this.method<'diff'>('diff', { changes: [] })
  changed = this.method<'changed'>('changed', { changes: [] })
  history = this.method<'history'>('history', { entries: [] })
  bisect = this.method<'bisect'>('bisect', {
    commit: { id: ID, parents: [], state: ID, message: '', author: '', time: 0 },
    steps: 0,
  })
  branches = this.method<'branches'>('branches', { branches: [] })
  branch = this.method<'branch'>('branch', { branches: [] })
  switch = this.method<'switch'>('switch', { branches: [] })
  deleteBranch = this.method<'deleteBranch'>('deleteBranch', { branches: [] })
  verify = this.method<'verify'>('verify', { ok: true, objects: 0, problems: [], redacted: [], purged: [] })
  purge = this.method<'purge'>('purge', { purged: [], epoch: 0, elsewhere: [] })
  exportPart = this.method<'exportPart'>('exportPart', { text: '' })
  backup = this.method<'backup'>('backup', 0)
  deleteMemory = this.method<'deleteMemory'>('deleteMemory', undefined)
  beginImport = () => {
    throw new Error('not in these tests')
  }
  merge = this.method<'merge'>('merge', { status: 'up_to_date' })
  memories = this.method<'memories'>('memories', { memories: [] })
  stats = this.method<'stats'>('stats', { memories: 0, commits: 0, bytes: 0, schema_version: 1 })
  memoryStats = this.method<'memoryStats'>('memoryStats', {
    memory: 'm',
    branch: 'main',
    commit: null,
    commits: 0,
    items: 0,
    epoch: 0,
  })
  close = this.method<'close'>('close', undefined)
  openMemories = () => 0
  storeBytes = () => 0
  checkWritable = () => {}

  private method<Name extends keyof StoresApi>(
    method: Name,
    byDefault: Awaited<ReturnType<StoresApi[Name]>>,
  ): StoresApi[Name] {
    const call = (request?: unknown, control?: { signal?: AbortSignal }) =>
      new Promise((resolve, reject) => {
        const signal = control?.signal
        signal?.addEventListener('abort', () =>
          reject(new MnemError('cancelled', 'The write was cancelled.')),
        )
        this.calls.push({
          method,
          request,
          signal,
          resolve: (value = byDefault) => resolve(value),
          reject,
        })
        const waiters = this.waiters
        this.waiters = []
        for (const wake of waiters) wake()
      })
    return call as unknown as StoresApi[Name]
  }
}
