import { ping } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handlePing = defineHandler(ping, 'now', async () => ({ time: Date.now() }))
