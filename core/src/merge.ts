import { MnemError } from './errors.ts'
import type { NodeFields } from './object.ts'

/**
 * The merge of two states, as a pure function (shared/merge.md, "The merge of T into O"). Items are told apart by their
 * origin, the commit and number that they were born with, never by number or content: so two agents that both add get
 * both sets of items, and what one side forgot stays forgotten.
 */

/** An item as one commit has it. */
export interface Copy {
  number: number
  /** Where it was born. */
  origin: string
  /** Who gave it this value. */
  why: string
  /** The value itself, its id apart; undefined where a purge took it. */
  fields: NodeFields | undefined
  /** Where a purge took the value: the id of its object, which only a node of this number can have. */
  object: Uint8Array | undefined
  /** The same for nodes that are equal but for their id. */
  value: string
}

export interface MergeInput {
  ours: readonly Copy[]
  theirs: readonly Copy[]
  /** The best common ancestors: one, several after a criss-cross, or none. */
  bases: readonly (readonly Copy[])[]
  /** The numbers that an add would begin with on either side. */
  top: { ours: number; theirs: number }
}

export type ConflictKind = 'edit/edit' | 'edit/delete' | 'delete/edit'

/** An item that both sides changed. `number` is the one in ours, or for `delete/edit` the one that it would get. */
export interface Conflict {
  number: number
  kind: ConflictKind
  base: Copy | undefined
  ours: Copy | undefined
  theirs: Copy | undefined
}

/** How a conflict is settled: by one side, the base, as gone, or by a new value. */
export type Resolution = 'ours' | 'theirs' | 'base' | 'delete' | { fields: NodeFields }

export type Strategy = 'ours' | 'theirs'

/** What the merge sets at a number of ours. */
export interface Setting {
  number: number
  fields: NodeFields | undefined
  /** In place of fields that a purge took: the object's id. */
  object: Uint8Array | undefined
  origin: string
  /** The copy of theirs whose value this is. */
  from: Copy | undefined
}

export interface MergePlan {
  set: Setting[]
  /** What would be set, had a purge not taken the value that another id asks for: these numbers stay empty. */
  lost: Setting[]
  remove: number[]
  /** The number that comes next. */
  next: number
  /** Items of theirs that got another number, in the order of theirs. */
  renumbered: { from: number; to: number }[]
  /** Those that are not settled; while there are any, nothing is to be written. */
  conflicts: Conflict[]
}

/** Plan the merge. Throws `invalid_ref` for a resolution of what is no conflict. */
export function planMerge(
  input: MergeInput,
  resolutions: ReadonlyMap<number, Resolution> = new Map(),
  strategy?: Strategy,
): MergePlan {
  const plan: MergePlan = { set: [], lost: [], remove: [], next: 0, renumbered: [], conflicts: [] }
  const { incoming, conflicts } = sort(input, plan)
  number(input, incoming, plan)
  for (const conflict of conflicts) if (conflict.kind === 'delete/edit') conflict.number = plan.next++
  settle(conflicts, resolutions, strategy, plan)
  plan.set.sort((a, b) => a.number - b.number)
  plan.remove.sort((a, b) => a - b)
  plan.conflicts.sort((a, b) => a.number - b.number)
  return plan
}

/** Tell apart what stays, what comes in, what goes, and what both changed. */
function sort(
  { ours, theirs, bases }: MergeInput,
  plan: MergePlan,
): { incoming: Copy[]; conflicts: Conflict[] } {
  const known = bases.map(byOrigin)
  const mine = byOrigin(ours)
  const other = byOrigin(theirs)
  const incoming: Copy[] = []
  const conflicts: Conflict[] = []
  for (const copy of ours) {
    const base = known.flatMap((each) => each.get(copy.origin) ?? [])
    const their = other.get(copy.origin)
    if (their === undefined) {
      // Theirs never had it, or had it and forgot it.
      if (base.length === 0) continue
      if (isUnchanged(copy, base)) plan.remove.push(copy.number)
      else conflicts.push(conflict('edit/delete', base, copy, undefined))
    } else if (mine.get(copy.origin) === copy && !isSame(copy, their)) {
      const [isOurs, isTheirs] = [isUnchanged(copy, base), isUnchanged(their, base)]
      if (isOurs && !isTheirs) set(plan, settingOf(copy.number, their))
      else if (!isOurs && !isTheirs) conflicts.push(conflict('edit/edit', base, copy, their))
    }
  }
  for (const copy of theirs) {
    if (mine.has(copy.origin)) continue
    const base = known.flatMap((each) => each.get(copy.origin) ?? [])
    if (base.length === 0) incoming.push(copy)
    else if (!isUnchanged(copy, base)) conflicts.push(conflict('delete/edit', base, undefined, copy))
  }
  return { incoming, conflicts }
}

/** Give the incoming their numbers: their own if all of those are free, else all of them new ones. */
function number({ top }: MergeInput, incoming: readonly Copy[], plan: MergePlan): void {
  const start = Math.max(top.ours, top.theirs)
  const keeps = incoming.every((copy) => copy.number >= top.ours)
  plan.next = keeps ? start : start + incoming.length
  for (const [index, copy] of incoming.entries()) {
    const to = keeps ? copy.number : start + index
    const isSet = set(plan, settingOf(to, copy))
    if (isSet && to !== copy.number) plan.renumbered.push({ from: copy.number, to })
  }
}

function settle(
  conflicts: readonly Conflict[],
  resolutions: ReadonlyMap<number, Resolution>,
  strategy: Strategy | undefined,
  plan: MergePlan,
): void {
  const numbers = new Set(conflicts.map((each) => each.number))
  for (const resolved of resolutions.keys()) {
    if (!numbers.has(resolved))
      throw new MnemError(
        'invalid_ref',
        `There is no conflict at item ${resolved}; leave its resolution out.`,
      )
  }
  for (const conflict of conflicts) {
    const resolution = resolutions.get(conflict.number) ?? strategy
    if (resolution === undefined) plan.conflicts.push(conflict)
    else apply(conflict, resolution, plan)
  }
}

function apply(conflict: Conflict, resolution: Resolution, plan: MergePlan): void {
  const { number, base, ours, theirs } = conflict
  const identity = (ours ?? theirs) as Copy
  if (typeof resolution === 'object') {
    const { fields } = resolution
    set(plan, { number, fields, object: undefined, origin: identity.origin, from: undefined })
    return
  }
  const chosen = { ours, theirs, base, delete: undefined }[resolution]
  if (resolution === 'ours') return
  if (chosen === undefined) {
    if (ours !== undefined) plan.remove.push(number)
  } else if (resolution === 'theirs') set(plan, settingOf(number, chosen))
  else set(plan, { ...settingOf(number, chosen), origin: identity.origin, from: undefined })
}

/** What a copy of another commit gives at a number. */
function settingOf(number: number, from: Copy): Setting {
  const object = from.number === number ? from.object : undefined
  return { number, fields: from.fields, object, origin: from.origin, from }
}

/** A purged node can't get another id, which needs its content: its number stays empty. */
function set(plan: MergePlan, setting: Setting): boolean {
  const isThere = setting.fields !== undefined || setting.object !== undefined
  if (isThere) plan.set.push(setting)
  else plan.lost.push(setting)
  return isThere
}

function conflict(
  kind: ConflictKind,
  base: readonly Copy[],
  ours: Copy | undefined,
  theirs: Copy | undefined,
): Conflict {
  return { number: ours?.number ?? -1, kind, base: base[0], ours, theirs }
}

/** By origin; where one is live twice, which merges by others can bring about, the lower number counts. */
function byOrigin(copies: readonly Copy[]): Map<string, Copy> {
  const found = new Map<string, Copy>()
  for (const copy of copies) {
    const other = found.get(copy.origin)
    if (other === undefined || copy.number < other.number) found.set(copy.origin, copy)
  }
  return found
}

function isSame(a: Copy, b: Copy): boolean {
  return a.why === b.why || a.value === b.value
}

function isUnchanged(copy: Copy, base: readonly Copy[]): boolean {
  return base.every((each) => isSame(copy, each))
}
