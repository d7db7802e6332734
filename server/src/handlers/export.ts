import { exportMethod } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleExport = defineHandler(exportMethod, 'read', ({ stores }, { memory, after }) =>
  stores.exportPart({ memory, after }),
)
