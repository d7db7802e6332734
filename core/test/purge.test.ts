import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MemoryEngine } from '../src/engine/memory.ts'
import { SqliteEngine } from '../src/engine/sqlite.ts'
import { openStores, Stores } from '../src/stores.ts'
import { exported, imported } from './exports.ts'
import { idOf, MEMORY, text } from './model.ts'
import { temporaryFolder } from './temporary.ts'

const memory = MEMORY
const reason = 'a key that leaked'

/** Which of the files of a folder hold this text. */
function filesWith(dir: string, marker: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(marker))
    .map((entry) => entry.name)
}

async function shownText(stores: Stores, at?: string): Promise<string> {
  const { items = [] } = await stores.listing({ memory, at, redacted: true })
  return items.map(({ text }) => text).join('\n')
}

/** Everything that can be read of a memory, in one text. */
async function everything(stores: Stores): Promise<string> {
  const parts: string[] = [await exported(stores)]
  const { branches } = await stores.branches(memory)
  for (const { name } of branches) {
    const { commits } = await stores.log({ memory, branch: name, limit: 1000 })
    for (const { id } of commits) {
      parts.push(await shownText(stores, id))
      parts.push(JSON.stringify(await stores.changed({ memory, commit: id })))
    }
  }
  return parts.join('\n')
}

const engines = [
  ['in memory', async () => new MemoryEngine()],
  ['SQLite', async () => SqliteEngine.open(temporaryFolder())],
] as const

describe.each(engines)('a purge, %s', (_name, open) => {
  test('takes content out of every version and leaves every id, and the rest, as it was', async () => {
    const stores = new Stores(await open())
    await stores.add({ memory, items: [text('before')] })
    const { ids, commit } = await stores.add({ memory, items: [text('hunter2'), text('beside')] })
    await stores.branch({ memory, name: 'old' })
    await stores.clear({ memory })
    await stores.add({ memory, items: [text('new')] })
    const logs = async () => [
      await stores.log({ memory }),
      await stores.log({ memory, branch: 'old' }),
      await stores.branches(memory),
    ]
    const before = await logs()
    const result = await stores.purge({ memory, ids: [ids[0] as string], at: commit, reason, author: 'ann' })
    expect(result).toEqual({ purged: [idOf(1)], epoch: 1, elsewhere: [] })
    expect(await logs()).toEqual(before)
    expect(await everything(stores)).not.toContain('hunter2')
    expect(await shownText(stores, commit)).toContain('beside')
    expect(
      (await stores.listing({ memory, at: commit })).items?.map(({ text }) => JSON.parse(text).id),
    ).toEqual([idOf(0), idOf(2)])
    expect((await stores.listing({ memory, at: commit, redacted: true })).items?.[1]?.text).toBe(
      `{"id":"${idOf(1)}","redacted":true}`,
    )
    const why = await stores.why({ memory, id: idOf(1), at: commit })
    expect([why.commit.id, why.item.text]).toEqual([commit, `{"id":"${idOf(1)}","redacted":true}`])
    const verified = await stores.verify({ memory })
    expect(verified).toMatchObject({ ok: true, problems: [], redacted: [idOf(1)] })
    expect(verified.purged).toMatchObject([{ id: idOf(1), author: 'ann', reason }])
    await stores.verify({ memory, repair: true })
    expect(await stores.verify({ memory })).toEqual(verified)
  })

  test('needs no `at` for what was cleared away, and takes the live item where there is one', async () => {
    const stores = new Stores(await open())
    await stores.add({ memory, items: [text('first life')] })
    await stores.clear({ memory })
    await stores.purge({ memory, ids: [idOf(0)], reason })
    expect(await everything(stores)).not.toContain('first life')
    await stores.add({ memory, items: [text('second life')] })
    await stores.clear({ memory })
    await stores.add({ memory, items: [text('third life')] })
    await stores.purge({ memory, ids: [idOf(0)], reason })
    const left = await everything(stores)
    expect([left.includes('second life'), left.includes('third life')]).toEqual([true, false])
  })

  test('reaches every number that an item has had, on every branch, and merges go on with it', async () => {
    const stores = new Stores(await open())
    await stores.add({ memory, items: [text('base')] })
    await stores.branch({ memory, name: 'trial' })
    await stores.add({ memory, items: [text('ours')] })
    const { ids } = await stores.add({ memory, branch: 'trial', items: [text('hunter2'), text('theirs')] })
    const merge = await stores.merge({ memory, from: 'trial' })
    expect(merge.renumbered).toEqual([{ from: idOf(1), to: idOf(3), count: 2 }])
    await stores.purge({ memory, branch: 'trial', ids: [ids[0] as string], reason })
    expect(await everything(stores)).not.toContain('hunter2')
    expect((await stores.verify({ memory })).redacted).toEqual([idOf(1), idOf(3)])
    // Merged back: nothing new, and the purged one stands under its new number.
    expect((await stores.merge({ memory, from: 'main', into: 'trial' })).status).toBe('fast_forward')
    expect((await stores.why({ memory, id: idOf(3) })).commit.message).toBe('add 2 items to m')
    expect(await stores.verify({ memory })).toMatchObject({ ok: true })
  })

  test('a purged item can’t come over under another number: it stays behind, and the merge says so', async () => {
    const stores = new Stores(await open())
    await stores.add({ memory, items: [text('base')] })
    await stores.branch({ memory, name: 'trial' })
    await stores.add({ memory, items: [text('ours')] })
    await stores.add({ memory, branch: 'trial', items: [text('hunter2'), text('theirs')] })
    await stores.purge({ memory, branch: 'trial', ids: [idOf(1)], reason })
    const merged = await stores.merge({ memory, from: 'trial' })
    expect(merged).toMatchObject({ status: 'merged', redacted: [idOf(1)] })
    expect(merged.renumbered).toEqual([{ from: idOf(2), to: idOf(4), count: 1 }])
    expect(
      (await stores.listing({ memory })).items?.map(({ text }) => JSON.parse(text).content.text),
    ).toEqual(['base', 'ours', 'theirs'])
    const { ids } = await stores.add({ memory, items: [text('next')] })
    expect(ids).toEqual([idOf(5)])
    expect(await stores.verify({ memory })).toMatchObject({ ok: true, redacted: [idOf(1)] })
  })

  test('a purged item that keeps its number comes over as such', async () => {
    const stores = new Stores(await open())
    await stores.add({ memory, items: [text('base')] })
    await stores.branch({ memory, name: 'trial' })
    await stores.add({ memory, branch: 'trial', items: [text('hunter2'), text('theirs')] })
    await stores.purge({ memory, branch: 'trial', ids: [idOf(1)], reason })
    await stores.forget({ memory, ids: [idOf(0)] })
    expect((await stores.merge({ memory, from: 'trial' })).status).toBe('merged')
    expect(await shownText(stores)).toContain(`{"id":"${idOf(1)}","redacted":true}`)
    expect(await stores.forget({ memory, ids: [idOf(1)] })).toMatchObject({ forgotten: 1 })
    expect(await stores.verify({ memory })).toMatchObject({ ok: true, redacted: [idOf(1)] })
  })

  test('is done once: asked again it changes nothing, and what is not there is not found', async () => {
    const stores = new Stores(await open())
    const { ids } = await stores.add({ memory, items: [text('hunter2')], idempotency_key: 'k' })
    const purge = { memory, ids, reason }
    expect(await stores.purge(purge)).toMatchObject({ epoch: 1 })
    expect(await stores.purge(purge)).toMatchObject({ epoch: 1 })
    expect(await stores.add({ memory, items: [text('hunter2')], idempotency_key: 'k' })).toMatchObject({
      ids,
      replayed: true,
    })
    await expect(stores.purge({ memory, ids: [idOf(7)], reason })).rejects.toMatchObject({
      kind: 'not_found',
    })
    await expect(stores.purge({ memory: 'no', ids, reason })).rejects.toMatchObject({ kind: 'not_found' })
    await expect(stores.purge({ memory, ids: [], reason })).rejects.toMatchObject({ kind: 'invalid_params' })
    await expect(stores.purge({ memory, ids, reason: ' ' })).rejects.toMatchObject({ kind: 'invalid_params' })
    await stores.forget({ memory, ids })
    const { commit } = await stores.add({ memory, items: [text('later')] })
    await expect(stores.purge({ memory, ids, at: commit, reason })).rejects.toMatchObject({
      kind: 'not_found',
    })
  })

  test('tells a caller who holds the content to drop it', async () => {
    const stores = new Stores(await open())
    const { ids } = await stores.add({ memory, items: [text('a'), text('hunter2'), text('b')] })
    const { commit, count, epoch } = await stores.listing({ memory })
    const have = { commit: commit as string, count, epoch }
    expect((await stores.listing({ memory, have })).mode).toBe('unchanged')
    await stores.purge({ memory, ids: [ids[1] as string], reason })
    const now = await stores.listing({ memory, have })
    expect(now).toMatchObject({ mode: 'full', count: 2, epoch: 1, commit })
    // From there on it is told only what comes.
    const held = { commit: commit as string, count: 2, epoch: 1 }
    expect((await stores.listing({ memory, have: held })).mode).toBe('unchanged')
    await stores.add({ memory, items: [text('c')] })
    const appended = await stores.listing({ memory, have: held })
    expect([appended.mode, appended.items?.map(({ text }) => JSON.parse(text).id)]).toEqual([
      'appended',
      [idOf(3)],
    ])
  })

  test('an export names what was purged, and comes back the same; an old one is refused', async () => {
    const stores = new Stores(await open())
    await stores.add({ memory, items: [text('base')] })
    await stores.branch({ memory, name: 'trial' })
    await stores.add({ memory, items: [text('ours')] })
    await stores.add({ memory, branch: 'trial', items: [text('hunter2'), text('theirs')] })
    await stores.merge({ memory, from: 'trial' })
    const old = await exported(stores)
    await imported(stores, 'copy', old)
    expect(await stores.purge({ memory, ids: [idOf(3)], reason })).toMatchObject({ elsewhere: ['copy'] })
    const now = await exported(stores)
    expect(JSON.parse(now.split('\n', 1)[0] as string).redacted).toMatchObject([{ reason }, { reason }])
    await imported(stores, 'again', now)
    expect(await exported(stores, 'again')).toBe(now)
    expect(await stores.verify({ memory: 'again' })).toMatchObject({ ok: true })
    // Identity went along: the same item, by the same writer.
    expect(await stores.why({ memory: 'again', id: idOf(3) })).toEqual(
      await stores.why({ memory, id: idOf(3) }),
    )
    const refused = { kind: 'conflict', data: { reason: 'purged' } }
    await expect(imported(stores, 'back', old)).rejects.toMatchObject(refused)
    await stores.deleteMemory(memory)
    await expect(imported(stores, memory, old)).rejects.toMatchObject(refused)
    expect((await stores.memories({})).memories.map(({ name }) => name)).toEqual(['again', 'copy'])
    await imported(stores, 'back', old, { force: true })
    expect(await exported(stores, 'back')).toBe(old)
  })

  test('what is purged while an old export comes in is not brought back by it', async () => {
    const stores = new Stores(await open())
    const { ids } = await stores.add({ memory, items: [text('hunter2')] })
    const importer = stores.beginImport('back')
    await importer.take(await exported(stores))
    await stores.purge({ memory, ids, reason })
    await expect(importer.finish()).rejects.toMatchObject({ kind: 'conflict' })
    await importer.abort()
    expect((await stores.memories({})).memories.map(({ name }) => name)).toEqual([memory])
  })

  test('any items of any history: they are gone, and nothing else is', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.tuple(fc.constant('add' as const), fc.integer({ min: 1, max: 4 })) },
      { weight: 2, arbitrary: fc.tuple(fc.constant('forget' as const), fc.nat(20)) },
      { weight: 1, arbitrary: fc.tuple(fc.constant('clear' as const), fc.nat()) },
      { weight: 2, arbitrary: fc.tuple(fc.constant('merge' as const), fc.nat()) },
      { weight: 2, arbitrary: fc.tuple(fc.constant('purge' as const), fc.nat(1000)) },
    )
    const branches = ['main', 'a', 'b']
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(step, fc.nat(2)), { maxLength: 25 }), async (steps) => {
        const stores = new Stores(await open())
        await stores.add({ memory, items: [text('root')] })
        for (const name of ['a', 'b']) await stores.branch({ memory, name })
        const purged = new Set<string>(['no such text'])
        let made = 0
        for (const [[kind, n], on] of steps) {
          const branch = branches[on] as string
          const { items = [] } = await stores.listing({ memory, branch, redacted: true })
          const picked = items[n % Math.max(items.length, 1)]
          const item = picked && JSON.parse(picked.text)
          if (kind === 'add')
            await stores.add({
              memory,
              branch,
              items: Array.from({ length: n }, () => text(`text ${++made}.`)),
            })
          else if (kind === 'clear') await stores.clear({ memory, branch })
          else if (kind === 'merge')
            await stores.merge({ memory, into: branch, from: branches[n % 3] as string, strategy: 'theirs' })
          else if (item !== undefined && kind === 'forget')
            await stores.forget({ memory, branch, ids: [item.id] })
          else if (item !== undefined) {
            await stores.purge({ memory, branch, ids: [item.id], reason })
            if (item.content !== undefined) purged.add(item.content.text)
          }
        }
        const left = await everything(stores)
        for (const gone of purged) expect(left).not.toContain(gone)
        for (let i = 1; i <= made; i++)
          expect(left.includes(`text ${i}.`) || purged.has(`text ${i}.`)).toBe(true)
        expect(await stores.verify({ memory })).toMatchObject({ ok: true, problems: [] })
        const export_ = await exported(stores)
        await imported(stores, 'copy', export_)
        expect(await exported(stores, 'copy')).toBe(export_)
        expect(await stores.verify({ memory: 'copy' })).toMatchObject({ ok: true, problems: [] })
      }),
      { numRuns: 30 },
    )
  })
})

describe('the files of a store', () => {
  test('hold nothing of a purged item (G16)', async () => {
    const dir = temporaryFolder()
    const stores = await openStores(dir)
    const marker = 'hunter2-marker-of-a-key'
    const { ids, commit } = await stores.add({
      memory,
      items: [text(`${marker} ${'x'.repeat(20_000)} ${marker}`)],
      idempotency_key: marker.slice(0, 3),
    })
    for (let i = 0; i < 50; i++) await stores.add({ memory, items: [text(`more ${i}`)] })
    await stores.branch({ memory, name: 'side' })
    await stores.clear({ memory })
    const backup = join(temporaryFolder(), 'backup')
    await stores.backup(backup)
    expect(filesWith(dir, marker).length).toBeGreaterThan(0)
    await stores.purge({ memory, ids, at: commit, reason })
    expect(filesWith(dir, marker)).toEqual([])
    expect(await everything(stores)).not.toContain(marker)
    expect(await stores.verify({ memory })).toMatchObject({ ok: true, redacted: ids })
    await stores.close()
    expect(filesWith(dir, marker)).toEqual([])
    // What a purge does not reach: a backup that was taken before.
    expect(filesWith(backup, marker)).toEqual(['mnem.db'])
  })

  test('hold nothing of many purged items of many sizes, where pages were rebuilt meanwhile', async () => {
    const sizes = [0, 10, 300, 900, 1500, 3000, 9000]
    for (const seed of [1, 2, 3]) {
      const dir = temporaryFolder()
      const stores = await openStores(dir)
      const ids: string[] = []
      for (let i = 0; i < 120; i++) {
        const size = sizes[(i * 7 + seed * i * i) % sizes.length] as number
        ids.push(...(await stores.add({ memory, items: [text(`marker-${i}-`.repeat(1 + size / 10))] })).ids)
      }
      const some = ids.filter((_, i) => (i * seed) % 3 !== 0)
      for (let start = 0; start < some.length; start += 9)
        await stores.purge({ memory, ids: some.slice(start, start + 9), reason })
      for (const [i] of ids.entries())
        expect(filesWith(dir, `marker-${i}-`).length > 0).toBe((i * seed) % 3 === 0)
      expect(await stores.verify({ memory })).toMatchObject({ ok: true })
      await stores.close()
    }
  })

  test('are rewritten where another process still read them, by the next try', async () => {
    const dir = temporaryFolder()
    const stores = await openStores(dir, { busyTimeout: 50 })
    const { ids } = await stores.add({ memory, items: [text('hunter2-marker')] })
    const other = new DatabaseSync(join(dir, 'mnem.db'))
    other.exec('BEGIN; SELECT count(*) FROM row')
    other.prepare('SELECT count(*) FROM row').get()
    const purge = { memory, ids, reason }
    await expect(stores.purge(purge)).rejects.toMatchObject({ kind: 'busy', data: { reason: 'erase' } })
    expect((await stores.verify({ memory })).redacted).toEqual(ids)
    other.exec('COMMIT')
    expect(await stores.purge(purge)).toMatchObject({ purged: ids })
    expect(filesWith(dir, 'hunter2-marker')).toEqual([])
    other.close()
    await stores.close()
  })

  test('another process sees at once that an item is gone', async () => {
    const dir = temporaryFolder()
    const [stores, other] = [await openStores(dir), await openStores(dir)]
    const { ids } = await stores.add({ memory, items: [text('a'), text('hunter2'), text('b')] })
    expect((await other.listing({ memory })).count).toBe(3)
    await stores.purge({ memory, ids: [ids[1] as string], reason })
    expect((await other.listing({ memory })).items?.map(({ text }) => JSON.parse(text).content.text)).toEqual(
      ['a', 'b'],
    )
    await other.add({ memory, items: [text('c')] })
    expect(await stores.verify({ memory })).toMatchObject({ ok: true })
    await stores.close()
    await other.close()
  })
})
