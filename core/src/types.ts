import type { JsonText } from './json.ts'

/**
 * The data that callers hand in and get back. Field names are the format's own (snake_case), the same here, on the
 * wire and in Python, so that nothing is renamed on the way.
 */

/** Content of an item, tagged so that nothing has to be guessed (format.md, table of contents). */
export type Content =
  | { type: 'text'; text: string }
  | { type: 'json'; json: JsonText }
  | { type: 'bytes'; base64: string }
  | { type: 'image'; base64: string }

/** How an item came to exist; each field optional, an empty string counts as set. */
export interface Provenance {
  agent_step?: string | undefined
  observation?: string | undefined
  tool_call?: string | undefined
  source?: string | undefined
  note?: string | undefined
}

/** An item to be stored. `metadata` is a JSON object as text; `event_time` is Unix ms. */
export interface NewItem {
  content: Content
  mime_type: string
  metadata?: JsonText | null | undefined
  provenance?: Provenance | undefined
  event_time?: number | undefined
}

/** What every write takes. `time` is the commit's, Unix ms, default now; `author` defaults to `agent`. */
export interface WriteRequest {
  memory: string
  branch?: string | undefined
  author?: string | undefined
  message?: string | undefined
  time?: number | undefined
  idempotency_key?: string | undefined
}

export interface AddRequest extends WriteRequest {
  items: NewItem[]
}

export interface ForgetRequest extends WriteRequest {
  ids: string[]
  /** The commit (or time) where the caller read the ids; numbers that name another item since then are `not_found`. */
  at?: At | undefined
}

/** A commit-ish (branch name first, then an id prefix of 4 to 64 hex digits) or a time in Unix ms. */
export type At = string | number

export interface AddResult {
  commit: string
  ids: string[]
  replayed?: true
}

export interface ForgetResult {
  /** `null` when nothing was live, so that no commit was made. */
  commit: string | null
  forgotten: number
  replayed?: true
}

/** A commit as `log` shows it: ids as 64 hex digits, time in Unix ms. */
export interface Commit {
  id: string
  parents: string[]
  state: string
  message: string
  author: string
  time: number
}

/** What a caller already holds of a memory: a listing's `commit`, how many items of it, and its `epoch`. */
export interface Have {
  commit: string
  count: number
  epoch: number
}

export interface ListingRequest {
  memory: string
  branch?: string | undefined
  at?: At | undefined
  have?: Have | undefined
  /** Show items whose content was purged, too. */
  redacted?: boolean | undefined
  /** Keep the newest items only: at most so many … */
  max_items?: number | undefined
  /** … and at most so many bytes of items' JSON. */
  max_bytes?: number | undefined
}

export interface Listing {
  commit: string | null
  epoch: number
  branch: string
  /** Live items, before any budget; purged ones count where they are shown. */
  count: number
  mode: 'full' | 'unchanged' | 'appended'
  /** Each item's JSON, oldest first: `{"id", "content": Content, "mime_type", "metadata"?, "provenance"?, "event_time"?}`. */
  items?: JsonText[]
  /** With a budget: how many items it left out. */
  omitted?: number
  /** The answer was cut at the limit of bytes: ask again with `at` = `commit` and `have` with the count now held. */
  more?: true
}

export interface LogRequest {
  memory: string
  branch?: string | undefined
  at?: At | undefined
  /** Unix ms: only commits not older than this. */
  since?: number | undefined
  /** At most so many commits, default 100, at most 10,000. */
  limit?: number | undefined
  /** Go on behind this commit: the `next` of the answer before. */
  after?: string | undefined
  first_parent?: boolean | undefined
}

export interface Log {
  commits: Commit[]
  next?: string
}

export interface WhyRequest {
  memory: string
  id: string
  branch?: string | undefined
  at?: At | undefined
}

export interface Why {
  commit: Commit
  item: JsonText
}

export interface MemoriesRequest {
  prefix?: string | undefined
  limit?: number | undefined
  after?: string | undefined
}

export interface MemoryInfo {
  name: string
  branch: string
  commit: string | null
}

export interface Stats {
  /** Memories in the store directory. */
  memories: number
  /** Commits stored. */
  commits: number
  /** Bytes of the store's files on disk; 0 in memory. */
  bytes: number
  schema_version: number
}

export interface MemoryStats {
  memory: string
  branch: string
  commit: string | null
  commits: number
  items: number
  epoch: number
}

/** What an item was and what it became. `changed` has both sides. */
export interface ItemChange {
  id: string
  kind: 'added' | 'removed' | 'changed'
  old?: JsonText
  new?: JsonText
}

export interface DiffRequest {
  memory: string
  /** Where times are looked for; default the default branch. */
  branch?: string | undefined
  from: At
  to: At
}

export interface ChangedRequest {
  memory: string
  /** A commit-ish. */
  commit: string
}

export interface Changes {
  /** By item id. */
  changes: ItemChange[]
}

export interface HistoryRequest {
  memory: string
  id: string
  branch?: string | undefined
}

export interface HistoryEntry {
  commit: Commit
  kind: 'added' | 'removed' | 'changed'
  /** What the commit set; null where it removed the item. */
  item: JsonText | null
}

export interface History {
  /** Newest first. */
  entries: HistoryEntry[]
}

/** What to look for: an item that contains a text, an item, or so many items. */
export type BisectCondition = { contains: string } | { item: string } | { count_at_least: number }

export interface BisectRequest {
  memory: string
  branch?: string | undefined
  /** Where it does not hold yet; default before the first commit. */
  good?: At | undefined
  /** Where it holds; default the head. */
  bad?: At | undefined
  where?: BisectCondition | undefined
  /** In place of `where`: give this one of the commits behind `good` up to `bad`, oldest first, counted from 0. */
  probe?: number | undefined
}

export interface Bisect {
  commit: Commit
  /** With `where`: states that were looked at between `good` and `bad`. */
  steps?: number
  /** With `probe`: commits behind `good` up to `bad`. */
  count?: number
}

export interface Branch {
  name: string
  /** Id of its head. */
  commit: string
  default: boolean
}

export interface BranchList {
  /** By name. */
  branches: Branch[]
}

export interface BranchRequest {
  memory: string
  name: string
  /** Where it begins; default the head of the default branch. */
  at?: At | undefined
}

/** How a conflict is settled: `ours`, `theirs`, `base`, `delete`, or an item to take its place. */
export type MergeResolution = 'ours' | 'theirs' | 'base' | 'delete' | NewItem

export interface MergeRequest {
  memory: string
  /** What is merged: a commit-ish or a time. */
  from: At
  /** The branch that it is merged into; default the default branch. */
  into?: string | undefined
  strategy?: string | undefined
  /** By item id, as conflicts name it. */
  resolutions?: Readonly<Record<string, MergeResolution>> | undefined
  author?: string | undefined
  message?: string | undefined
  time?: number | undefined
  idempotency_key?: string | undefined
}

export interface MergeConflict {
  /** In ours, or where it would stand there. */
  id: string
  kind: 'edit/edit' | 'edit/delete' | 'delete/edit'
  base: JsonText | null
  ours: JsonText | null
  theirs: JsonText | null
}

/** Items of theirs that have other numbers now: `count` of them, one after another. */
export interface Renumbering {
  from: string
  to: string
  count: number
}

export interface MergeResult {
  status: 'up_to_date' | 'fast_forward' | 'merged' | 'conflicts'
  commit?: string
  renumbered?: Renumbering[]
  /** Items of theirs whose content was purged, so that they could not come over under another number. */
  redacted?: string[]
  conflicts?: MergeConflict[]
  replayed?: true
}

/** Something that is not what it must be. */
export interface Problem {
  /** A commit's id, a branch, a place, or what else it is found at. */
  object: string
  /** What is wrong, and what it affects. */
  problem: string
}

export interface VerifyRequest {
  memory: string
  /** Make what is derived anew. */
  repair?: boolean | undefined
}

export interface PurgeRequest {
  memory: string
  ids: string[]
  branch?: string | undefined
  /** The commit (or time) where the ids name these items; without it the head, or the last that was called so. */
  at?: At | undefined
  author?: string | undefined
  /** Why; it is kept. */
  reason: string
}

export interface PurgeResult {
  purged: string[]
  epoch: number
  /** Other memories of the store that hold the same items, as an import of this one does. */
  elsewhere: string[]
}

/** An object whose content was purged, and who did it when and why. */
export interface Purged {
  /** Id of the object. */
  object: string
  /** Id of the item. */
  id: string
  author: string
  /** Unix ms. */
  time: number
  reason: string
}

export interface VerifyResult {
  ok: boolean
  /** Objects that were derived again: nodes, states and commits. */
  objects: number
  problems: Problem[]
  /** Items whose content was purged. */
  redacted: string[]
  /** Who purged what, when and why. */
  purged: Purged[]
}

export interface ExportRequest {
  memory: string
  /** Go on behind this place: the `next` of the part before. */
  after?: string | undefined
}

export interface ExportPart {
  /** Whole lines. */
  text: string
  /** Another part follows. */
  next?: string
}
