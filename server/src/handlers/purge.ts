import { purge } from '@mnem/protocol'
import { isVisible } from '../access/access.ts'
import { defineHandler } from './handler.ts'

export const handlePurge = defineHandler(purge, 'write', async ({ stores, signal, access }, params) => {
  const { elsewhere, ...result } = await stores.purge(params, { signal })
  return { ...result, elsewhere: elsewhere.filter((memory) => isVisible(access, memory)) }
})
