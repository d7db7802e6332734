import { bisect } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleBisect = defineHandler(bisect, 'read', ({ stores }, params) => stores.bisect(params))
