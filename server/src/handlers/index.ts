import { handleAdd } from './add.ts'
import { handleClear } from './clear.ts'
import { handleClose } from './close.ts'
import { handleForget } from './forget.ts'
import type { Handler } from './handler.ts'
import { handleLog } from './log.ts'
import { handleMemories } from './memories.ts'
import { handlePing } from './ping.ts'
import { handleQuery } from './query.ts'
import { handleShow } from './show.ts'
import { handleStats } from './stats.ts'
import { handleUpdateContext } from './update-context.ts'
import { handleWhy } from './why.ts'

const ALL: readonly Handler[] = [
  handleAdd,
  handleClear,
  handleClose,
  handleForget,
  handleLog,
  handleMemories,
  handlePing,
  handleQuery,
  handleShow,
  handleStats,
  handleUpdateContext,
  handleWhy,
]

/** Handlers by the name of their method. `initialize` and `shutdown` are the session's own. */
export const HANDLERS: ReadonlyMap<string, Handler> = new Map(
  ALL.map((handler) => [handler.method.method, handler]),
)
