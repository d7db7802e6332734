import { add } from './add.ts'
import { backup } from './backup.ts'
import { bisect } from './bisect.ts'
import { branchMethod } from './branch.ts'
import { branches } from './branches.ts'
import { cancelRequest } from './cancel-request.ts'
import { changed } from './changed.ts'
import { clear } from './clear.ts'
import { close } from './close.ts'
import { deleteBranch } from './delete-branch.ts'
import { deleteMemory } from './delete-memory.ts'
import { diff } from './diff.ts'
import { exit } from './exit.ts'
import { exportMethod } from './export.ts'
import { forget } from './forget.ts'
import { history } from './history.ts'
import { importMethod } from './import.ts'
import { initialize } from './initialize.ts'
import { log } from './log.ts'
import { memories } from './memories.ts'
import { memoryChanged } from './memory-changed.ts'
import { merge } from './merge.ts'
import type { Method } from './method.ts'
import { ping } from './ping.ts'
import { progress } from './progress.ts'
import { purge } from './purge.ts'
import { query } from './query.ts'
import { show } from './show.ts'
import { shutdown } from './shutdown.ts'
import { stats } from './stats.ts'
import { subscribe } from './subscribe.ts'
import { switchMethod } from './switch.ts'
import { unsubscribe } from './unsubscribe.ts'
import { updateContext } from './update-context.ts'
import { verify } from './verify.ts'
import { why } from './why.ts'

/** A group of methods that `initialize` names as a capability once all of them are served. */
export interface MethodGroup {
  /** Null: part of every session, no capability of its own. */
  readonly capability: string | null
  readonly title: string
  /** Whether this version of the server answers them; the others get `method_not_found`. */
  readonly served: boolean
  readonly methods: readonly Method[]
}

/** Every method of the protocol, in the order in which the documentation tells of them. */
export const GROUPS: readonly MethodGroup[] = [
  {
    capability: null,
    title: 'Session',
    served: true,
    methods: [initialize, shutdown, exit, ping, cancelRequest],
  },
  {
    capability: 'memory',
    title: 'Memory',
    served: true,
    methods: [add, query, updateContext, clear, forget, close],
  },
  { capability: 'log', title: 'Looking back', served: true, methods: [log, show, why] },
  { capability: 'stats', title: 'Looking around', served: true, methods: [memories, stats] },
  {
    capability: 'history',
    title: 'Comparing and searching',
    served: true,
    methods: [diff, history, changed, bisect],
  },
  {
    capability: 'branches',
    title: 'Branching',
    served: true,
    methods: [branches, branchMethod, switchMethod, deleteBranch],
  },
  { capability: 'merge', title: 'Merging', served: true, methods: [merge] },
  { capability: 'verify', title: 'Checking', served: true, methods: [verify] },
  { capability: 'transfer', title: 'In and out', served: true, methods: [exportMethod, importMethod] },
  { capability: 'backup', title: 'Backing up', served: true, methods: [backup] },
  { capability: 'delete', title: 'Deleting', served: true, methods: [deleteMemory] },
  { capability: 'purge', title: 'Purging', served: true, methods: [purge] },
  {
    capability: 'notify',
    title: 'Being told',
    served: false,
    methods: [subscribe, unsubscribe, memoryChanged, progress],
  },
]

/** A method, and whether this version serves it. */
export interface MethodEntry {
  readonly method: Method
  readonly served: boolean
}

/** Every method by its name. */
export const METHODS: ReadonlyMap<string, MethodEntry> = new Map(
  GROUPS.flatMap(({ methods, served }) =>
    methods.map((method) => [method.method, { method, served }] as const),
  ),
)

/** What `initialize` answers as `capabilities`. */
export const CAPABILITIES: readonly string[] = GROUPS.flatMap(({ capability, served }) =>
  capability !== null && served ? [capability] : [],
)
