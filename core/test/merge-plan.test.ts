import { describe, expect, test } from 'vitest'
import { type Copy, type MergeInput, planMerge, type Resolution, type Strategy } from '../src/merge.ts'

/** A copy of the item that was born as `origin`; its value tells who wrote it. */
function copy(number: number, origin: string, value = origin): Copy {
  return {
    number,
    origin,
    why: `${origin} ${value}`,
    value,
    object: undefined,
    fields: { content: JSON.stringify(value) },
  }
}

/** The item 0 and what each side made of it. */
function edited(base: string | undefined, ours: string | undefined, theirs: string | undefined): MergeInput {
  const as = (value: string | undefined) => (value === undefined ? [] : [copy(0, 'a', value)])
  return { ours: as(ours), theirs: as(theirs), bases: [as(base)], top: { ours: 1, theirs: 1 } }
}

function shown(input: MergeInput, resolutions: Record<number, Resolution> = {}, strategy?: Strategy) {
  const given = new Map(
    Object.entries(resolutions).map(([number, resolution]) => [Number(number), resolution]),
  )
  const plan = planMerge(input, given, strategy)
  return {
    set: plan.set.map(({ number, fields, from }) => [
      number,
      fields && JSON.parse(fields.content),
      from?.number,
    ]),
    remove: plan.remove,
    next: plan.next,
    conflicts: plan.conflicts.map(({ number, kind }) => [number, kind]),
  }
}

describe('an item that was edited', () => {
  test.each<[string, MergeInput, object]>([
    ['on neither side stays', edited('1', '1', '1'), { set: [], remove: [], conflicts: [] }],
    ['by theirs is theirs', edited('1', '1', '2'), { set: [[0, '2', 0]], conflicts: [] }],
    ['by ours stays ours', edited('1', '2', '1'), { set: [], conflicts: [] }],
    ['by both alike is no conflict', edited('1', '2', '2'), { set: [], conflicts: [] }],
    ['by both is one', edited('1', '2', '3'), { set: [], conflicts: [[0, 'edit/edit']] }],
    [
      'by ours and removed by theirs is one',
      edited('1', '2', undefined),
      { remove: [], conflicts: [[0, 'edit/delete']] },
    ],
    [
      'by theirs and removed by ours is one, where it would stand',
      edited('1', undefined, '2'),
      { set: [], conflicts: [[1, 'delete/edit']], next: 2 },
    ],
    ['by nobody and removed by theirs goes', edited('1', '1', undefined), { remove: [0], conflicts: [] }],
    [
      'by nobody and removed by ours stays away',
      edited('1', undefined, '1'),
      { set: [], conflicts: [], next: 1 },
    ],
  ])('%s', (_what, input, expected) => {
    expect(shown(input)).toMatchObject(expected)
  })

  const item = { fields: { content: '"new"' } }
  test.each<[string, MergeInput, number, Resolution, object]>([
    ['edit/edit, ours', edited('1', '2', '3'), 0, 'ours', { set: [], remove: [] }],
    ['edit/edit, theirs', edited('1', '2', '3'), 0, 'theirs', { set: [[0, '3', 0]] }],
    ['edit/edit, base', edited('1', '2', '3'), 0, 'base', { set: [[0, '1', undefined]] }],
    ['edit/edit, delete', edited('1', '2', '3'), 0, 'delete', { set: [], remove: [0] }],
    ['edit/edit, an item', edited('1', '2', '3'), 0, item, { set: [[0, 'new', undefined]] }],
    ['edit/delete, ours', edited('1', '2', undefined), 0, 'ours', { set: [], remove: [] }],
    ['edit/delete, theirs', edited('1', '2', undefined), 0, 'theirs', { set: [], remove: [0] }],
    ['edit/delete, base', edited('1', '2', undefined), 0, 'base', { set: [[0, '1', undefined]] }],
    ['delete/edit, ours', edited('1', undefined, '2'), 1, 'ours', { set: [], remove: [], next: 2 }],
    ['delete/edit, theirs', edited('1', undefined, '2'), 1, 'theirs', { set: [[1, '2', 0]], next: 2 }],
    ['delete/edit, delete', edited('1', undefined, '2'), 1, 'delete', { set: [], remove: [] }],
    ['delete/edit, an item', edited('1', undefined, '2'), 1, item, { set: [[1, 'new', undefined]] }],
  ])('%s settles it', (_what, input, number, resolution, expected) => {
    expect(shown(input, { [number]: resolution })).toMatchObject({ ...expected, conflicts: [] })
  })

  test('a strategy settles what no resolution does', () => {
    const input = {
      ours: [copy(0, 'a', '2'), copy(1, 'b', '2')],
      theirs: [copy(0, 'a', '3'), copy(1, 'b', '3')],
      bases: [[copy(0, 'a', '1'), copy(1, 'b', '1')]],
      top: { ours: 2, theirs: 2 },
    }
    expect(shown(input, { 1: 'ours' }, 'theirs')).toMatchObject({ set: [[0, '3', 0]], conflicts: [] })
    expect(shown(input, {}, 'ours')).toMatchObject({ set: [], conflicts: [] })
    expect(shown(input).conflicts).toEqual([
      [0, 'edit/edit'],
      [1, 'edit/edit'],
    ])
  })

  test('a resolution of what is no conflict is refused', () => {
    expect(() => shown(edited('1', '1', '2'), { 0: 'ours' })).toThrow(/no conflict at item 0/)
  })

  test('is unchanged only if it is in every base that has it', () => {
    const input = edited('1', '2', '3')
    const bases = [[copy(0, 'a', '2')], [copy(0, 'a', '3')], []]
    // Ours is one base's value and theirs the other's: both have changed.
    expect(shown({ ...input, bases }).conflicts).toEqual([[0, 'edit/edit']])
    expect(shown({ ...input, bases: [[copy(0, 'a', '2')], [copy(0, 'a', '2')]] })).toMatchObject({
      set: [[0, '3', 0]],
      conflicts: [],
    })
  })
})

describe('what comes in', () => {
  test('keeps its numbers if all are free, else all get new ones', () => {
    const theirs = [copy(3, 'x'), copy(5, 'y')]
    const input = { ours: [copy(0, 'a')], theirs, bases: [], top: { ours: 3, theirs: 6 } }
    expect(shown(input)).toMatchObject({
      set: [
        [3, 'x', 3],
        [5, 'y', 5],
      ],
      next: 6,
    })
    expect(shown({ ...input, top: { ours: 4, theirs: 6 } })).toMatchObject({
      set: [
        [6, 'x', 3],
        [7, 'y', 5],
      ],
      next: 8,
    })
  })

  test('and is purged leaves its number empty where it would need another', () => {
    const purged = { ...copy(0, 'x'), fields: undefined, object: new Uint8Array(32) }
    const input = {
      ours: [copy(0, 'a')],
      theirs: [purged, copy(1, 'y')],
      bases: [],
      top: { ours: 1, theirs: 2 },
    }
    const plan = planMerge(input)
    expect(plan.set.map(({ number }) => number)).toEqual([3])
    expect(plan.renumbered).toEqual([{ from: 1, to: 3 }])
    expect(plan.lost).toMatchObject([{ number: 2, from: { number: 0 } }])
    expect(plan.next).toBe(4)
  })

  test('and is live twice comes in once, as the lower number', () => {
    const ours = [copy(0, 'a', '2'), copy(7, 'a', '2')]
    const theirs = [copy(0, 'a', '3')]
    const input = { ours, theirs, bases: [[copy(0, 'a', '2')]], top: { ours: 8, theirs: 1 } }
    expect(shown(input)).toMatchObject({ set: [[0, '3', 0]], remove: [] })
  })
})
