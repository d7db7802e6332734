import { merge } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleMerge = defineHandler(merge, 'write', ({ stores, signal }, params) =>
  stores.merge(params, { signal }),
)
