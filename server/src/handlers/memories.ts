import { memories } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleMemories = defineHandler(memories, 'read', ({ stores }, params) => stores.memories(params))
