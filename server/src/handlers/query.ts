import { query } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleQuery = defineHandler(query, 'read', ({ stores }, { query: _ignored, ...request }) =>
  stores.listing(request),
)
