import { changed } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleChanged = defineHandler(changed, 'read', ({ stores }, params) => stores.changed(params))
