import { close } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

/** Nothing is held for a connection yet; the method is here so that clients can already say that they are done. */
export const handleClose = defineHandler(close, 'now', async () => null)
