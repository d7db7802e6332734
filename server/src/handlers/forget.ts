import { forget } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleForget = defineHandler(forget, 'write', ({ stores, signal }, params) =>
  stores.forget(params, { signal }),
)
