import { handleAdd } from './add.ts'
import { handleBackup } from './backup.ts'
import { handleBisect } from './bisect.ts'
import { handleBranch } from './branch.ts'
import { handleBranches } from './branches.ts'
import { handleChanged } from './changed.ts'
import { handleClear } from './clear.ts'
import { handleClose } from './close.ts'
import { handleDeleteBranch } from './delete-branch.ts'
import { handleDeleteMemory } from './delete-memory.ts'
import { handleDiff } from './diff.ts'
import { handleExport } from './export.ts'
import { handleForget } from './forget.ts'
import type { Handler } from './handler.ts'
import { handleHistory } from './history.ts'
import { handleImport } from './import.ts'
import { handleLog } from './log.ts'
import { handleMemories } from './memories.ts'
import { handleMerge } from './merge.ts'
import { handlePing } from './ping.ts'
import { handlePurge } from './purge.ts'
import { handleQuery } from './query.ts'
import { handleShow } from './show.ts'
import { handleStats } from './stats.ts'
import { handleSwitch } from './switch.ts'
import { handleUpdateContext } from './update-context.ts'
import { handleVerify } from './verify.ts'
import { handleWhy } from './why.ts'

const ALL: readonly Handler[] = [
  handleAdd,
  handleBackup,
  handleBisect,
  handleBranch,
  handleBranches,
  handleChanged,
  handleClear,
  handleClose,
  handleDeleteBranch,
  handleDeleteMemory,
  handleDiff,
  handleExport,
  handleForget,
  handleHistory,
  handleImport,
  handleLog,
  handleMemories,
  handleMerge,
  handlePing,
  handlePurge,
  handleQuery,
  handleShow,
  handleStats,
  handleSwitch,
  handleUpdateContext,
  handleVerify,
  handleWhy,
]

/** Handlers by the name of their method. `initialize` and `shutdown` are the session's own. */
export const HANDLERS: ReadonlyMap<string, Handler> = new Map(
  ALL.map((handler) => [handler.method.method, handler]),
)
