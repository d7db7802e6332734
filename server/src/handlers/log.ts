import { log } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleLog = defineHandler(log, 'read', ({ stores }, params) => stores.log(params))
