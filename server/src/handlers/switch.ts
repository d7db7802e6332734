import { switchMethod } from '@mnem/protocol'
import { defineHandler } from './handler.ts'

export const handleSwitch = defineHandler(switchMethod, 'write', ({ stores, signal }, params) =>
  stores.switch(params, { signal }),
)
