import { z } from 'zod'
import { rawJson } from './raw-json.ts'
import { NAME_BYTES, text } from './text.ts'

/** The shapes that several methods share (protocol.md, Shapes). What callers send is strict, what they get is loose. */

/** Name of a memory. */
export const memoryName = text({
  min: 1,
  max: NAME_BYTES,
  printable: true,
  description:
    'Name of a memory: 1 to 255 UTF-8 bytes without control characters, compared code point by code point.',
})

/** Name of a branch. */
export const branchName = text({
  min: 1,
  max: NAME_BYTES,
  printable: true,
  description: 'Name of a branch: 1 to 255 UTF-8 bytes without control characters.',
})

/** `branch`, optional everywhere. */
export const branch = branchName.optional().meta({
  description: "Branch; without it the memory's default branch (`main` until `switch` says otherwise).",
})

/** Unix milliseconds of a commit. */
export const commitTime = z.int().min(0).meta({ description: 'Unix time in milliseconds.' })

/** Branch name first, then a unique prefix of 4 to 64 hex digits. */
export const commitish = text({
  min: 1,
  max: NAME_BYTES,
  description: 'A commit-ish: a branch name, else an id prefix of 4 to 64 hex digits.',
})

/** Where in the history to read. */
export const at = z
  .union([commitish, commitTime], 'must be a commit-ish or a whole number, a time in Unix ms')
  .meta({
    description:
      'A commit-ish (branch name first, then an id prefix of 4 or more hex digits), or a Unix time in ms: the first commit, walking first parents back from the head, that is not later.',
  })

/** Full id of a commit or another object. */
export const objectId = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'is no full id of 64 lowercase hex digits')
  .meta({ description: 'Object id: BLAKE3 as 64 lowercase hex digits.' })

/** Id of an item: the prefix of its store, a colon, ten digits. */
export const itemId = text({
  min: 1,
  max: NAME_BYTES + 11,
  description: "Id of an item: its store's prefix, a colon and ten digits, such as `prefs:0000000007`.",
})

/** A count of things. */
export const count = z.int().min(0)

/** Content of an item, tagged so that nothing has to be guessed. */
export const content = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('text'), text: z.string() }),
    z.strictObject({ type: z.literal('json'), json: rawJson }),
    z.strictObject({ type: z.literal('bytes'), base64: z.string() }),
    z.strictObject({ type: z.literal('image'), base64: z.string() }),
  ])
  .meta({ id: 'Content', description: 'What an item holds: text, a JSON object, bytes, or a PNG image.' })

/** How an item came to exist. */
export const provenance = z
  .strictObject({
    agent_step: z.string().optional(),
    observation: z.string().optional(),
    tool_call: z.string().optional(),
    source: z.string().optional(),
    note: z.string().optional(),
  })
  .meta({ id: 'Provenance', description: 'How an item came to exist; an empty string counts as set.' })

const eventTime = z
  .int()
  .meta({ description: 'When it happened: Unix time in milliseconds, may be negative.' })

/** An item to be stored. */
export const newItem = z
  .strictObject({
    content,
    mime_type: text({ max: 1024, description: 'MIME type as the caller names it.' }),
    metadata: rawJson.nullish().meta({ description: 'Any JSON object, or null.' }),
    provenance: provenance.optional(),
    event_time: eventTime.optional(),
  })
  .meta({ id: 'NewItem', description: 'An item to be stored.' })

/** Content as it is answered: a JSON object stands there as itself. */
export const storedContent = z
  .discriminatedUnion('type', [
    z.looseObject({ type: z.literal('text'), text: z.string() }),
    z.looseObject({ type: z.literal('json'), json: z.record(z.string(), z.unknown()) }),
    z.looseObject({ type: z.literal('bytes'), base64: z.string() }),
    z.looseObject({ type: z.literal('image'), base64: z.string() }),
  ])
  .meta({ id: 'StoredContent', description: 'Content as it is answered; a later server may add members.' })

/** An item as it is answered. A purged one has `redacted` and no content. */
export const storedItem = z
  .looseObject({
    id: itemId,
    content: storedContent.optional(),
    mime_type: z.string().optional(),
    metadata: z.record(z.string(), z.unknown()).nullish(),
    provenance: z.record(z.string(), z.string()).optional(),
    event_time: eventTime.optional(),
    redacted: z.literal(true).optional(),
  })
  .meta({ id: 'StoredItem', description: 'A stored item. A purged one is `{"id", "redacted": true}`.' })

/** A commit as `log` shows it. */
export const commit = z
  .looseObject({
    id: objectId,
    parents: z.array(objectId),
    state: objectId,
    message: z.string(),
    author: z.string(),
    time: commitTime,
  })
  .meta({ id: 'Commit', description: 'A commit; `parents` has our own line first.' })

/** What the caller already holds, so that it need not be sent again. */
export const have = z.strictObject({ commit: objectId, count, epoch: count }).meta({
  id: 'Have',
  description: "What the caller holds already: a listing's commit, how many of its items, its epoch.",
})

/** The answer of reads. */
export const listing = z
  .looseObject({
    commit: objectId
      .nullable()
      .meta({ description: 'The commit that was read; null when nobody has written yet.' }),
    epoch: count.meta({ description: 'Rises with each purge.' }),
    branch: z.string(),
    count: count.meta({ description: 'Live items, before any budget.' }),
    mode: z.enum(['full', 'unchanged', 'appended']).meta({
      description: '`unchanged`: what you have is current. `appended`: `items` follow the ones you have.',
    }),
    items: z.array(storedItem).optional().meta({ description: 'Oldest first; absent when unchanged.' }),
    omitted: count.optional().meta({ description: 'With a budget: items left out.' }),
    more: z.literal(true).optional().meta({
      description:
        'Cut at the limit of a frame: ask again with `at` = commit and `have` with the count now held.',
    }),
  })
  .meta({ id: 'Listing', description: 'The items of a memory at a commit.' })

/** Members that every write takes. */
export const writeFields = {
  memory: memoryName,
  branch,
  author: text({ max: NAME_BYTES, description: 'Who writes; default `agent`.' }).optional(),
  message: text({ max: 65_536, description: 'Commit message; default says what was done.' }).optional(),
  time: commitTime.optional().meta({ description: 'Unix time of the commit in ms; default now.' }),
  idempotency_key: text({
    min: 1,
    max: NAME_BYTES,
    description:
      'The same key again gives the first answer again, with `"replayed": true`, and changes nothing.',
  }).optional(),
}

/** `replayed` in the answers of writes. */
export const replayed = z.literal(true).optional().meta({
  description: 'This idempotency key was seen before: the first answer again, nothing changed.',
})

/** The answer of `clear` and `forget`. */
export const forgetResult = z
  .looseObject({
    commit: objectId
      .nullable()
      .meta({ description: 'null when nothing was live, so that no commit was made.' }),
    forgotten: count,
    replayed,
  })
  .meta({ id: 'ForgetResult', description: 'What a `clear` or `forget` did.' })

/** One difference between two commits. */
export const change = z
  .looseObject({
    id: itemId,
    kind: z.enum(['added', 'removed', 'changed']),
    old: storedItem.optional(),
    new: storedItem.optional(),
  })
  .meta({ id: 'Change', description: 'How one item differs between two commits.' })

/** `null`: done, nothing to tell. */
export const nothing = z.null()

/** No params. */
export const noParams = z.strictObject({})

/** Limit of a page of answers. */
export const pageLimit = (byDefault: number) =>
  z
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .meta({ description: `At most so many; default ${byDefault}, at most 10,000.` })
