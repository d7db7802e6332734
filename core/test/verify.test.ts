import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { entryChecksum, rowChecksum } from '../src/engine/checksum.ts'
import { SqliteEngine } from '../src/engine/sqlite.ts'
import { Stores } from '../src/stores.ts'
import { MEMORY, text } from './model.ts'
import { temporaryFolder } from './temporary.ts'

const memory = MEMORY

/** A store with a history of every kind: batches, forgets, a clear, branches, a merge with renumbering, a key. */
async function history(dir: string): Promise<void> {
  const stores = new Stores(await SqliteEngine.open(dir))
  await stores.add({ memory, items: [text('a'), text('b')] })
  await stores.branch({ memory, name: 'trial' })
  const { ids } = await stores.add({ memory, items: [text('c')], idempotency_key: 'k' })
  await stores.add({ memory, branch: 'trial', items: [text('d'), text('e')] })
  await stores.merge({ memory, from: 'trial' })
  await stores.forget({ memory, ids })
  await stores.clear({ memory, branch: 'trial' })
  await stores.add({ memory, branch: 'trial', items: [text('f')] })
  await stores.add({ memory: 'other', items: [text('x')] })
  await stores.close()
}

async function check(dir: string, repair = false) {
  const stores = new Stores(await SqliteEngine.open(dir))
  try {
    return await stores.verify({ memory, repair })
  } finally {
    await stores.close()
  }
}

function change(dir: string, work: (db: DatabaseSync) => void): void {
  const db = new DatabaseSync(join(dir, 'mnem.db'))
  work(db)
  db.close()
}

/** Change a row and give it a checksum that fits, as somebody would who means to deceive. */
function forge(db: DatabaseSync, seq: number, alter: (row: { body: Uint8Array }) => object): void {
  const row = db.prepare('SELECT * FROM row WHERE seq = ?').get(seq) as unknown as { body: Uint8Array }
  const forged = { ...row, ...alter(row) } as never as Parameters<typeof rowChecksum>[0] & {
    parent: number | null
    parent2: number | null
  }
  const parents = [forged.parent, forged.parent2].filter((parent) => parent !== null)
  db.prepare('UPDATE row SET id = ?, body = ?, checksum = ? WHERE seq = ?').run(
    forged.id,
    forged.body,
    rowChecksum({ ...forged, parents }),
    seq,
  )
}

describe('verify', () => {
  test('finds a sound memory sound, counts its objects, and a memory that is not there empty', async () => {
    const dir = temporaryFolder()
    await history(dir)
    const result = await check(dir)
    expect(result).toMatchObject({ ok: true, problems: [], redacted: [], purged: [] })
    expect(result.objects).toBeGreaterThan(25)
    const stores = new Stores(await SqliteEngine.open(dir))
    expect(await stores.verify({ memory: 'nobody' })).toEqual({
      ok: true,
      objects: 0,
      problems: [],
      redacted: [],
      purged: [],
    })
    await stores.close()
  })

  test('finds content that was changed under a checksum that fits', async () => {
    const dir = temporaryFolder()
    await history(dir)
    change(dir, (db) =>
      forge(db, 1, ({ body }) => ({
        body: Buffer.from(Buffer.from(body).toString('latin1').replace('"a"', '"z"'), 'latin1'),
      })),
    )
    const { ok, problems } = await check(dir)
    expect(ok).toBe(false)
    expect(problems[0]?.problem).toMatch(/its state is not the one that its changes give/)
  })

  test('finds an author who was changed', async () => {
    const dir = temporaryFolder()
    await history(dir)
    change(dir, (db) =>
      forge(db, 2, ({ body }) => ({
        body: Buffer.from(Buffer.from(body).toString('latin1').replace('agent', 'other'), 'latin1'),
      })),
    )
    const { problems } = await check(dir)
    expect(problems.map(({ problem }) => problem)).toContain('its id is not the one that its fields give')
  })

  test('names a damaged commit and what hangs on it, and goes on with the rest', async () => {
    const dir = temporaryFolder()
    await history(dir)
    change(dir, (db) => db.exec("UPDATE row SET body = x'00' WHERE seq = 2"))
    const { ok, problems } = await check(dir)
    expect(ok).toBe(false)
    expect(problems.map(({ problem }) => problem).join('; ')).toMatch(/those behind it can’t be derived/)
    await expect(check(dir, true)).rejects.toMatchObject({ kind: 'corrupt_store' })
  })

  test.each<[string, (db: DatabaseSync) => void]>([
    [
      'that misses entries',
      (db) => db.exec("DELETE FROM entry WHERE memory = 1 AND substr(key, 1, 1) = CAST('i' AS BLOB)"),
    ],
    [
      'that misses merges',
      (db) => db.exec("DELETE FROM entry WHERE memory = 1 AND substr(key, 1, 1) = CAST('m' AS BLOB)"),
    ],
    [
      'that misses commits and keys',
      (db) =>
        db.exec(
          "DELETE FROM entry WHERE memory = 1 AND substr(key, 1, 1) IN (CAST('c' AS BLOB), CAST('k' AS BLOB))",
        ),
    ],
    [
      'whose entries are damaged',
      (db) =>
        db.exec(
          "UPDATE entry SET value = x'8200f5' WHERE memory = 1 AND substr(key, 1, 1) = CAST('i' AS BLOB)",
        ),
    ],
    [
      'with an entry that no commit asks for',
      (db) => {
        const { key, value } = db
          .prepare(
            "SELECT key, value FROM entry WHERE memory = 1 AND substr(key, 1, 1) = CAST('i' AS BLOB) LIMIT 1",
          )
          .get() as { key: Uint8Array; value: Uint8Array }
        const more = { key: Buffer.concat([key.subarray(0, 14), Buffer.of(99)]), value }
        db.prepare('INSERT INTO entry (memory, key, value, checksum) VALUES (1, ?, ?, ?)').run(
          more.key,
          more.value,
          entryChecksum(1, more),
        )
      },
    ],
  ])('finds an index %s, and repair makes it anew', async (_what, damage) => {
    const dir = temporaryFolder()
    await history(dir)
    const before = await check(dir)
    change(dir, damage)
    expect((await check(dir)).ok).toBe(false)
    expect(await check(dir, true)).toEqual(before)
    const stores = new Stores(await SqliteEngine.open(dir))
    expect((await stores.log({ memory, branch: 'main' })).commits).toHaveLength(5)
    const again = { memory, items: [text('c')], idempotency_key: 'k' }
    expect(await stores.add(again)).toMatchObject({ replayed: true })
    await stores.close()
  })

  test('finds a head that points at no commit', async () => {
    const dir = temporaryFolder()
    await history(dir)
    change(dir, (db) => db.exec("DELETE FROM ref WHERE memory = 1 AND branch = 'main'"))
    const { problems } = await check(dir)
    expect(problems).toContainEqual({ object: 'branch main', problem: 'the default branch is not there' })
  })

  test('lets writers go on, and does not mind what they write meanwhile', async () => {
    const stores = new Stores(await SqliteEngine.open(temporaryFolder()))
    for (let i = 0; i < 300; i++) await stores.add({ memory, items: [text(`${i}`)] })
    const verified = stores.verify({ memory })
    const adds = Array.from({ length: 50 }, (_, i) => stores.add({ memory, items: [text(`new ${i}`)] }))
    expect((await verified).problems).toEqual([])
    await Promise.all(adds)
    await stores.close()
  })
})
