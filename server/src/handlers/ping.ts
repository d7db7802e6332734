import { ping } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handlePing = defineHandler(ping, 'now', async ({ readiness }) => ({
  time: Date.now(),
  ...readiness(),
}))
