import { why } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleWhy = defineHandler(why, 'read', ({ stores }, params) => stores.why(params))
