import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MemoryEngine } from '../src/engine/memory.ts'
import { SqliteEngine } from '../src/engine/sqlite.ts'
import { JsonText } from '../src/json.ts'
import { Stores } from '../src/stores.ts'
import { exported, imported } from './exports.ts'
import { MEMORY, text } from './model.ts'
import { temporaryFolder } from './temporary.ts'

const memory = MEMORY

/** A history of every kind, with content of every kind. */
async function history(stores: Stores): Promise<void> {
  const json = new JsonText('{"z":1,"a":[1.0,-0.0,18446744073709551615,"é\\u0000"],"10":null,"2":{}}')
  await stores.add({
    memory,
    items: [
      text('a'),
      text('b "q" \u2028'),
      {
        content: { type: 'json', json },
        mime_type: 'application/json',
        metadata: new JsonText('{"m":1.0}'),
        provenance: { source: 's', note: '' },
        event_time: -5,
      },
    ],
  })
  await stores.branch({ memory, name: 'trial' })
  await stores.branch({ memory, name: 'côté/x', at: 'main' })
  const { ids } = await stores.add({
    memory,
    items: [text('c')],
    idempotency_key: 'k',
    author: 'ann',
    message: 'why\nnot',
  })
  await stores.add({ memory, branch: 'trial', items: [text('d'), text('e')] })
  await stores.merge({ memory, from: 'trial' })
  await stores.forget({ memory, ids })
  await stores.clear({ memory, branch: 'trial' })
  await stores.add({ memory, branch: 'trial', items: [text('f')] })
  await stores.merge({ memory, from: 'main', into: 'côté/x' })
  await stores.merge({ memory, from: 'trial', into: 'côté/x' })
  await stores.switch({ memory, branch: 'trial' })
}

const engines = [
  ['in memory', async () => new MemoryEngine()],
  ['SQLite', async () => SqliteEngine.open(temporaryFolder())],
] as const

describe.each(engines)('export and import, %s', (_name, open) => {
  test('give the same memory under another name, and the same export to the byte', async () => {
    const stores = new Stores(await open())
    await history(stores)
    const text_ = await exported(stores)
    const head = await imported(stores, 'copy', text_)
    expect((await stores.branches('copy')).branches).toEqual((await stores.branches(memory)).branches)
    expect((await stores.listing({ memory: 'copy' })).commit).toBe(head)
    for (const { name: branch } of (await stores.branches(memory)).branches) {
      const [a, b] = [
        await stores.listing({ memory, branch }),
        await stores.listing({ memory: 'copy', branch }),
      ]
      expect(b).toEqual(a)
      for (const item of a.items ?? []) {
        const id = JSON.parse(item.text).id
        expect(await stores.why({ memory: 'copy', branch, id })).toEqual(
          await stores.why({ memory, branch, id }),
        )
      }
    }
    expect(await exported(stores, 'copy')).toBe(text_)
    expect(await stores.verify({ memory: 'copy' })).toEqual(await stores.verify({ memory }))
    expect((await stores.memories()).memories.map(({ name }) => name)).toEqual(['copy', memory])
    // It goes on as the other would, with the ids of its prefix.
    const { ids } = await stores.add({ memory: 'copy', items: [text('next')] })
    expect(ids[0]).toMatch(/^m:/)
    await stores.close()
  })

  test('of one moment, whatever is written between its parts', async () => {
    const stores = new Stores(await open())
    for (let i = 0; i < 30; i++) await stores.add({ memory, items: [text('x'.repeat(400_000))] })
    const first = await stores.exportPart({ memory })
    expect(first.next).toBeDefined()
    await stores.add({ memory, items: [text('later')] })
    await stores.clear({ memory })
    let rest = ''
    for (let { next } = first; next !== undefined; ) {
      const part = await stores.exportPart({ memory, after: next })
      rest += part.text
      next = part.next
    }
    expect(rest).not.toContain('later')
    await imported(stores, 'copy', first.text + rest, { piece: 1_000_000 })
    expect((await stores.listing({ memory: 'copy', max_items: 0 })).count).toBe(30)
    await stores.close()
  })
})

describe('an export that is not what it says', () => {
  const changes: Array<[what: string, change: (lines: string[]) => string[], line: number | RegExp]> = [
    ['nothing', () => [], 1],
    ['no JSON', () => ['hello'], 1],
    ['another format', ([, ...rest]) => ['{"format":"other"}', ...rest], 1],
    [
      'another version',
      ([first, ...rest]) => [String(first).replace('"version":1', '"version":2'), ...rest],
      1,
    ],
    ['another hash', ([first, ...rest]) => [String(first).replace('blake3', 'sha1'), ...rest], 1],
    [
      'a member that is not known',
      ([first, ...rest]) => [String(first).replace('{', '{"more":1,'), ...rest],
      1,
    ],
    [
      'a branch to nothing',
      ([first, ...rest]) => [String(first).replace(/"main":"./, '"main":"f'), ...rest],
      1,
    ],
    [
      'a default branch that is none',
      ([first, ...rest]) => [
        String(first).replace('"default_branch":"trial"', '"default_branch":"none"'),
        ...rest,
      ],
      1,
    ],
    ['other content', (lines) => lines.map((line) => line.replace('"content":"a"', '"content":"z"')), 2],
    ['another author', (lines) => lines.map((line) => line.replace('"ann"', '"bob"')), 3],
    [
      'another time',
      (lines) => lines.map((line, i) => (i === 1 ? line.replace(/"time":\d/, '"time":9') : line)),
      2,
    ],
    ['a commit twice', (lines) => [...lines.slice(0, 2), ...lines.slice(1)], 3],
    ['a missing commit', (lines) => [lines[0] as string, ...lines.slice(2)], 2],
    ['commits in another order', ([a, b, c, ...rest]) => [a, c, b, ...rest] as string[], 2],
    [
      'a parent that is itself',
      (lines) =>
        lines.map((line, i) =>
          i === 1 ? line.replace('"parents":[]', `"parents":[${/"id":("[^"]*")/.exec(line)?.[1]}]`) : line,
        ),
      2,
    ],
    [
      'a member twice',
      (lines) => lines.map((line, i) => (i === 1 ? line.replace('"author"', '"author":"x","author"') : line)),
      2,
    ],
    [
      'a node twice',
      (lines) => lines.map((line, i) => (i === 1 ? line.replace('"m:_seq"', '"m:0000000000"') : line)),
      2,
    ],
    [
      'content too deep',
      (lines) =>
        lines.map((line, i) =>
          i === 1 ? line.replace('"content":"a"', `"content":${'['.repeat(5000)}${']'.repeat(5000)}`) : line,
        ),
      2,
    ],
    [
      'half a surrogate pair',
      (lines) =>
        lines.map((line, i) => (i === 1 ? line.replace('"content":"a"', '"content":"\\ud800"') : line)),
      2,
    ],
    ['an end that is cut off', (lines) => lines.slice(0, -1), /is missing: it was cut off/],
    ['a last line that is cut', (lines) => [...lines.slice(0, -1), String(lines.at(-1)).slice(0, -3)], /./],
    ['another count', (lines) => [...lines.slice(0, -1), '{"commits":1,"changes":1}'], /counts other/],
    ['more behind its end', (lines) => [...lines, lines[1] as string], /behind the last/],
  ]

  test.each(changes)('%s: nothing is imported, and the first fault is named', async (_what, change, at) => {
    const stores = new Stores(await SqliteEngine.open(temporaryFolder()))
    await history(stores)
    const before = await stores.stats()
    const lines = (await exported(stores)).trimEnd().split('\n')
    const hostile = `${change(lines).join('\n')}\n`
    await expect(imported(stores, 'copy', hostile)).rejects.toMatchObject({
      kind: 'corrupt_store',
      message: typeof at === 'number' ? expect.stringContaining(`Line ${at} `) : expect.stringMatching(at),
    })
    expect((await stores.memories()).memories.map(({ name }) => name)).toEqual([memory])
    expect({ ...(await stores.stats()), bytes: 0 }).toEqual({ ...before, bytes: 0 })
    // The memory that it came from is as well as before.
    expect((await stores.verify({ memory })).ok).toBe(true)
    await stores.add({ memory, items: [text('next')] })
    await stores.close()
  })

  test('any change of a byte is noticed, or changes nothing', async () => {
    const stores = new Stores(new MemoryEngine())
    await history(stores)
    const export_ = await exported(stores)
    await fc.assert(
      fc.asyncProperty(
        fc.nat(export_.length - 1),
        fc.constantFrom('0', 'a', '"', ' ', '{', '\n'),
        async (at, sign) => {
          const other = export_.slice(0, at) + sign + export_.slice(at + 1)
          const outcome = await imported(stores, 'copy', other).catch((error) => error.kind)
          if (outcome === 'corrupt_store' || outcome === 'invalid_params') return
          // What is not part of an id: the spelling of JSON, names of branches, the prefix of nothing.
          const header = export_.indexOf('\n')
          const again = await exported(stores, 'copy')
          expect(again.slice(again.indexOf('\n'))).toBe(
            at > header ? export_.slice(header) : again.slice(again.indexOf('\n')),
          )
          await stores.deleteMemory('copy')
        },
      ),
      { numRuns: 300 },
    )
    await stores.close()
  })

  test('a name that is taken is refused, at the beginning and at the end', async () => {
    const stores = new Stores(new MemoryEngine())
    await history(stores)
    const export_ = await exported(stores)
    await expect(imported(stores, memory, export_)).rejects.toMatchObject({ kind: 'conflict' })
    const importer = stores.beginImport('copy')
    await importer.take(export_)
    await stores.add({ memory: 'copy', items: [text('in between')] })
    await expect(importer.finish()).rejects.toMatchObject({ kind: 'conflict' })
    await importer.abort()
    expect((await stores.listing({ memory: 'copy' })).count).toBe(1)
    await stores.close()
  })
})

test('a memory is deleted with its history, and one that is not there is not found', async () => {
  const stores = new Stores(await SqliteEngine.open(temporaryFolder()))
  await history(stores)
  await stores.add({ memory: 'other', items: [text('stays')] })
  await stores.deleteMemory(memory)
  expect((await stores.memories()).memories.map(({ name }) => name)).toEqual(['other'])
  expect((await stores.listing({ memory })).count).toBe(0)
  expect((await stores.stats()).commits).toBe(1)
  await expect(stores.deleteMemory(memory)).rejects.toMatchObject({ kind: 'not_found' })
  const { ids } = await stores.add({ memory, items: [text('anew')] })
  expect(ids).toEqual(['m:0000000000'])
  expect((await stores.verify({ memory })).ok).toBe(true)
  await stores.close()
})

test('a backup is one moment’s store while writers go on, opens as a store, and overwrites none', async () => {
  const [dir, copy] = [temporaryFolder(), temporaryFolder()]
  const stores = new Stores(await SqliteEngine.open(dir))
  await history(stores)
  for (let i = 0; i < 200; i++) await stores.add({ memory: 'big', items: [text('x'.repeat(20_000))] })
  const before = await exported(stores)
  const backup = stores.backup(join(copy, 'new', 'place'))
  const adds = Array.from({ length: 100 }, (_, i) => stores.add({ memory: 'later', items: [text(`${i}`)] }))
  expect(await backup).toBeGreaterThan(4_000_000)
  await Promise.all(adds)
  const restored = new Stores(await SqliteEngine.open(join(copy, 'new', 'place')))
  expect(await exported(restored)).toBe(before)
  for (const { name } of (await restored.memories()).memories)
    expect((await restored.verify({ memory: name })).problems).toEqual([])
  await restored.add({ memory, items: [text('goes on')] })
  await restored.close()
  await expect(stores.backup(join(copy, 'new', 'place'))).rejects.toMatchObject({ kind: 'conflict' })
  await expect(stores.backup(dir)).rejects.toMatchObject({ kind: 'conflict' })
  writeFileSync(join(copy, 'file'), '')
  await expect(stores.backup(join(copy, 'file'))).rejects.toMatchObject({ kind: 'store_io' })
  await stores.close()
})
