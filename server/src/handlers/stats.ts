import { stats } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleStats = defineHandler(stats, 'read', async ({ stores }, params) =>
  params?.memory === undefined ? stores.stats() : stores.memoryStats(params.memory),
)
