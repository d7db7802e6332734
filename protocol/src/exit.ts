import { defineMethod } from './method.ts'
import { noParams } from './shapes.ts'

/** Close the connection; on stdio the server ends. */
export const exit = defineMethod({
  method: 'exit',
  doc: 'Notification: the server answers what it took and closes the connection; on stdio it ends.',
  verb: null,
  params: noParams.optional(),
  result: null,
  errors: [],
  example: { params: {} },
})
