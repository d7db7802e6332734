import { forwards, runsThrough, stretches } from './chain.ts'
import { type CommitText, commit, moveHead, type Target } from './commit.ts'
import type { EngineReader, MemoryRecord, Row } from './engine/engine.ts'
import { replay } from './heads.ts'
import { toHex } from './id.ts'
import { copiesOf, originOf, readOrigin } from './identity.ts'
import { renderNode } from './item.ts'
import { lastEvent } from './item-index.ts'
import { corruptIndex } from './keys.ts'
import {
  type Conflict,
  type Copy,
  type MergePlan,
  planMerge,
  type Resolution,
  type Strategy,
} from './merge.ts'
import { itemId } from './names.ts'
import { mergeBases, reachOf } from './reach.ts'
import { type Change, decodeRecord } from './record.ts'
import type { ItemPlace, State } from './state.ts'
import type { MergeConflict, MergeResult, Renumbering } from './types.ts'
import { removals, type Transaction } from './writes.ts'

/** What is merged, with which answers to conflicts. */
export interface MergeWork {
  theirs: Row
  /** The branch that `theirs` is the head of, whose state is kept at hand. */
  branch: string | undefined
  resolutions: ReadonlyMap<number, Resolution>
  strategy: Strategy | undefined
  text: CommitText
}

/** Merge a commit into the branch that is held. */
export async function mergeInto(
  transaction: Transaction,
  target: Target,
  work: MergeWork,
): Promise<{ result: MergeResult; row: Row | undefined }> {
  const { writer } = transaction
  const { memory, head } = target
  const snapshot = head.snapshot
  const { theirs } = work
  // Only a memory without any commit has no head, and such a memory has no commit to merge either.
  if (snapshot === undefined) throw corruptIndex('a branch has no head', new Uint8Array())
  const ours = snapshot.row
  if ((await reachOf(writer, ours)).has(theirs)) return { result: { status: 'up_to_date' }, row: undefined }
  if ((await reachOf(writer, theirs)).has(ours)) {
    const moved = await renamed(writer, memory.prefix, ours, theirs, snapshot.state)
    await moveHead(writer, target, ours, theirs)
    return {
      result: { status: 'fast_forward', commit: toHex(theirs.id), ...shown(memory.prefix, moved) },
      row: theirs,
    }
  }
  const other = await stateOf(transaction, target, work)
  const copies = await gather(writer, memory, ours, theirs, snapshot.state, other)
  const top = { ours: snapshot.state.top, theirs: other.top }
  const plan = planMerge({ ...copies, top }, work.resolutions, work.strategy)
  if (plan.conflicts.length > 0) {
    const conflicts = plan.conflicts.map((conflict) => showConflict(memory.prefix, conflict))
    return { result: { status: 'conflicts', conflicts }, row: undefined }
  }
  const changes = changesOf(plan, snapshot.state, other)
  const row = await commit(writer, target, changes, work.text, theirs)
  return {
    result: { ...merged(memory.prefix, row, plan.renumbered), ...lost(memory.prefix, plan) },
    row,
  }
}

/** What a merge that was made before answered: its commit holds all of it. */
export function mergedResult(prefix: string, row: Row, wasThere: boolean): MergeResult {
  if (wasThere) return { status: 'fast_forward', commit: toHex(row.id) }
  const moved = decodeRecord(row.body).changes.flatMap((change) => {
    const from = originOf(change)?.theirs
    return change.kind === 'item' && from !== undefined && from !== change.number
      ? [{ from, to: change.number }]
      : []
  })
  return merged(prefix, row, moved)
}

function merged(prefix: string, row: Row, moved: readonly { from: number; to: number }[]): MergeResult {
  return { status: 'merged', commit: toHex(row.id), ...shown(prefix, moved) }
}

/** Purged items of theirs that could not come over under another number. */
function lost(prefix: string, plan: MergePlan): { redacted?: string[] } {
  if (plan.lost.length === 0) return {}
  return { redacted: plan.lost.map(({ number, from }) => itemId(prefix, from?.number ?? number)) }
}

async function stateOf(transaction: Transaction, { memory }: Target, work: MergeWork): Promise<State> {
  const { theirs, branch } = work
  if (branch !== undefined) {
    const { snapshot } = await transaction.hold(memory, branch)
    if (snapshot?.row.seq === theirs.seq) return snapshot.state
  }
  return (await replay(transaction.writer, memory.prefix, theirs)).state
}

interface Gathered {
  ours: Copy[]
  theirs: Copy[]
  bases: Copy[][]
}

/**
 * The copies that the merge has to look at: where both sides come straight from one base, what either has touched since;
 * else all that is live.
 */
export async function gather(
  reader: EngineReader,
  memory: MemoryRecord,
  ours: Row,
  theirs: Row,
  ourState: State,
  theirState: State,
): Promise<Gathered> {
  const bases = await mergeBases(reader, ours, theirs)
  const [only, second] = bases
  const places = async (): Promise<{ ours: ItemPlace[]; theirs: ItemPlace[]; bases: ItemPlace[][] }> => {
    if (only !== undefined && second === undefined) {
      const straight = await touchedSince(reader, only, ours, theirs, ourState, theirState)
      if (straight !== undefined) return straight
    }
    const known: ItemPlace[][] = []
    for (const base of bases) known.push((await replay(reader, memory.prefix, base)).state.items())
    return { ours: ourState.items(), theirs: theirState.items(), bases: known }
  }
  const found = await places()
  const known: Copy[][] = []
  for (const base of found.bases) known.push(await copiesOf(reader, memory.id, base))
  return {
    ours: await copiesOf(reader, memory.id, found.ours),
    theirs: await copiesOf(reader, memory.id, found.theirs),
    bases: known,
  }
}

/** Where each item stands that was set or removed on either side since the base; undefined where a side left its chain. */
async function touchedSince(
  reader: EngineReader,
  base: Row,
  ours: Row,
  theirs: Row,
  ourState: State,
  theirState: State,
): Promise<{ ours: ItemPlace[]; theirs: ItemPlace[]; bases: ItemPlace[][] } | undefined> {
  const numbers = new Set<number>()
  for (const row of [ours, theirs]) {
    if (!runsThrough(await stretches(reader, row), base)) return undefined
    for await (const { body } of forwards(reader, row, base)) {
      for (const change of decodeRecord(body).changes) {
        if (change.kind === 'item' || change.kind === 'redacted') numbers.add(change.number)
        if (change.kind === 'remove') for (let i = 0; i < change.count; i++) numbers.add(change.from + i)
      }
    }
  }
  const sorted = Array.from(numbers).sort((a, b) => a - b)
  const live = (state: State) =>
    sorted.flatMap((number) => {
      const slot = state.item(number)
      return slot === undefined ? [] : [{ number, seq: slot.seq }]
    })
  const chain = await stretches(reader, base)
  const known: ItemPlace[] = []
  for (const number of sorted) {
    const event = await lastEvent(reader, base.memory, number, chain)
    if (event?.set === true) known.push({ number, seq: event.seq })
  }
  return { ours: live(ourState), theirs: live(theirState), bases: [known] }
}

function changesOf(plan: MergePlan, ours: State, theirs: State): Change[] {
  const changes: Change[] = removals(plan.remove)
  for (const { number, fields, object, origin: born, from } of plan.set) {
    const origin = from === undefined ? readOrigin(born) : { ...readOrigin(born), theirs: from.number }
    if (fields !== undefined) changes.push({ kind: 'item', number, fields, origin })
    else if (object !== undefined) changes.push({ kind: 'redacted', number, object, origin })
  }
  const isUsed = ours.hasCounter || theirs.hasCounter || ours.count > 0 || plan.set.length > 0
  if (isUsed && ours.counterValue !== plan.next) changes.push({ kind: 'counter', value: plan.next })
  return changes
}

/** What the branch's numbers became, where a commit that it moved on to has merged it. */
async function renamed(
  reader: EngineReader,
  prefix: string,
  ours: Row,
  theirs: Row,
  state: State,
): Promise<{ from: number; to: number }[]> {
  if (runsThrough(await stretches(reader, theirs), ours)) return []
  const after = (await replay(reader, prefix, theirs)).state
  const now = new Map(
    (await copiesOf(reader, theirs.memory, after.items())).map(({ origin, number }) => [origin, number]),
  )
  return (await copiesOf(reader, ours.memory, state.items())).flatMap(({ origin, number }) => {
    const to = now.get(origin)
    return to === undefined || to === number ? [] : [{ from: number, to }]
  })
}

/** Numbers that moved together, as runs. */
function shown(
  prefix: string,
  moved: readonly { from: number; to: number }[],
): { renumbered?: Renumbering[] } {
  const runs: { from: number; to: number; count: number }[] = []
  for (const { from, to } of moved) {
    const last = runs.at(-1)
    if (last !== undefined && last.from + last.count === from && last.to + last.count === to) last.count++
    else runs.push({ from, to, count: 1 })
  }
  if (runs.length === 0) return {}
  return {
    renumbered: runs.map(({ from, to, count }) => ({
      from: itemId(prefix, from),
      to: itemId(prefix, to),
      count,
    })),
  }
}

function showConflict(prefix: string, { number, kind, base, ours, theirs }: Conflict): MergeConflict {
  const show = (copy: Copy | undefined) =>
    copy === undefined
      ? null
      : renderNode(
          prefix,
          copy.number,
          copy.fields === undefined ? { kind: 'redacted' } : { kind: 'item', fields: copy.fields },
        )
  return { id: itemId(prefix, number), kind, base: show(base), ours: show(ours), theirs: show(theirs) }
}
