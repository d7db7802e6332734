import { diff } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleDiff = defineHandler(diff, 'read', ({ stores }, params) => stores.diff(params))
