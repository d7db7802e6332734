import { verify } from '@mnem/protocol'
import { failure } from '../session/failure.ts'
import { defineHandler } from './handler.ts'

/** Holds nothing up: it looks at what is there when it comes by. */
export const handleVerify = defineHandler(verify, 'long', async ({ stores, signal, access }, params) => {
  if (params.repair === true && !access.verbs.has('admin'))
    throw failure('unauthorized', 'This token may not repair; use one that was made with --verb admin.')
  return stores.verify(params, { signal })
})
