import { clear } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleClear = defineHandler(clear, 'write', ({ stores, signal }, params) =>
  stores.clear(params, { signal }),
)
