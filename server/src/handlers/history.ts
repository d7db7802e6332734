import { history } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleHistory = defineHandler(history, 'read', ({ stores }, params) => stores.history(params))
