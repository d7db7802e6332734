import { add } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleAdd = defineHandler(add, 'write', ({ stores, signal }, params) =>
  stores.add(params, { signal }),
)
