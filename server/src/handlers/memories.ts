import { memories } from '@mnem/protocol'
import { visibleMemories } from '../access/visible-memories.ts'
import { defineHandler } from './handler.ts'

export const handleMemories = defineHandler(memories, 'read', ({ stores, access }, params) =>
  visibleMemories(stores, access, params),
)
