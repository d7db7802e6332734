import { z } from 'zod'
import { ITEM, LISTING } from './examples.ts'
import { defineMethod } from './method.ts'
import { branch, count, have, listing, memoryName } from './shapes.ts'

/** Read what goes into a model's context. */
export const updateContext = defineMethod({
  method: 'update_context',
  doc: 'Gives the newest items that fit a budget, with `render` also as the text that a model is shown.',
  verb: 'read',
  params: z.strictObject({
    memory: memoryName,
    branch,
    have: have.optional(),
    max_items: count.optional().meta({ description: 'At most so many items.' }),
    max_bytes: count.optional().meta({ description: "At most so many bytes of items' JSON." }),
    render: z.boolean().optional().meta({ description: 'Add `text`.' }),
  }),
  result: listing.extend({
    text: z.string().optional().meta({
      description:
        "With `render`, unless unchanged: ListMemory's text for text items, JSON for dicts, `<bytes>` and `<image>` for the others; empty when there are no items.",
    }),
  }),
  errors: ['not_found', 'corrupt_store', 'too_large'],
  example: {
    params: { memory: 'prefs', max_items: 20, render: true },
    result: {
      ...LISTING,
      omitted: 0,
      text: `\nRelevant memory content (in chronological order):\n1. ${ITEM.content.text}\n`,
    },
  },
})

export type UpdateContextParams = z.infer<typeof updateContext.params>
export type UpdateContextResult = z.infer<typeof updateContext.result>
