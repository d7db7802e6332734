import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { SqliteEngine } from '../src/engine/sqlite.ts'
import { isSafeSqlite, openConnection, prepareFile } from '../src/engine/sqlite-file.ts'
import { openStores } from '../src/stores.ts'
import { temporaryFolder } from './temporary.ts'

const text = (value: string) => ({ content: { type: 'text' as const, text: value }, mime_type: 'text/plain' })

async function madeStore(): Promise<{ dir: string; file: string }> {
  const dir = temporaryFolder()
  const stores = await openStores(dir)
  for (const item of ['one', 'two', 'three']) await stores.add({ memory: 'prefs', items: [text(item)] })
  await stores.add({ memory: 'other', items: [text('sound')] })
  await stores.close()
  return { dir, file: join(dir, 'mnem.db') }
}

/** Change the file as another program would. */
function tamper(file: string, sql: string): void {
  const db = new DatabaseSync(file)
  db.exec(sql)
  db.close()
}

describe('the file', () => {
  test('is one private file in a directory that is made when missing', async () => {
    const dir = join(temporaryFolder(), 'a', 'b')
    await (await openStores(dir)).close()
    expect(readdirSync(dir)).toEqual(['mnem.db'])
    expect(statSync(join(dir, 'mnem.db')).mode & 0o777).toBe(0o600)
    expect(statSync(dir).mode & 0o777).toBe(0o700)
  })

  test('says whose it is and which schema it has', async () => {
    const header = readFileSync((await madeStore()).file)
    expect(header.toString('latin1', 68, 72)).toBe('mnem')
    expect(header.readUInt32BE(60)).toBe(1)
  })

  test('each connection has every PRAGMA in force, read back', () => {
    const db = openConnection(prepareFile(temporaryFolder()))
    const inForce = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0]
    expect(inForce('busy_timeout')).toBe(0)
    expect(inForce('journal_mode')).toBe('wal')
    expect(inForce('synchronous')).toBe(2)
    expect(inForce('secure_delete')).toBe(1)
    expect(inForce('temp_store')).toBe(2)
    db.close()
  })

  test('with a newer schema is refused, and not a byte of the directory changes', async () => {
    const { dir, file } = await madeStore()
    tamper(file, 'PRAGMA user_version = 2')
    const before = readFileSync(file)
    await expect(openStores(dir)).rejects.toMatchObject({
      kind: 'store_io',
      data: { reason: 'schema_version' },
      message: expect.stringContaining('Update mnem-sidecar'),
    })
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(readdirSync(dir)).toEqual(['mnem.db'])
  })

  test('of another program is refused unchanged', async () => {
    const dir = temporaryFolder()
    const file = join(dir, 'mnem.db')
    tamper(file, 'CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)')
    const before = readFileSync(file)
    await expect(openStores(dir)).rejects.toMatchObject({
      kind: 'store_io',
      data: { reason: 'application_id' },
    })
    expect(readFileSync(file).equals(before)).toBe(true)
  })

  test('that is no database is refused unchanged', async () => {
    const dir = temporaryFolder()
    const file = join(dir, 'mnem.db')
    writeFileSync(file, 'these are somebody’s notes, not a database')
    await expect(openStores(dir)).rejects.toMatchObject({ kind: 'corrupt_store' })
    expect(readFileSync(file, 'utf8')).toBe('these are somebody’s notes, not a database')
  })

  test('that was only just created by a process that then died is taken over', async () => {
    const dir = temporaryFolder()
    writeFileSync(join(dir, 'mnem.db'), '')
    const stores = await openStores(dir)
    expect(await stores.memories()).toEqual({ memories: [] })
    await stores.close()
  })
})

describe('a directory that can be neither used nor made', () => {
  test.each([
    ['is a file', 'x', (dir: string) => writeFileSync(join(dir, 'x'), '')],
    ['lies below a file', 'x/y', (dir: string) => writeFileSync(join(dir, 'x'), '')],
    ['holds a directory of the file’s name', '.', (dir: string) => mkdirSync(join(dir, 'mnem.db'))],
  ])('%s: one sentence', async (_what, inside, make) => {
    const folder = temporaryFolder()
    make(folder)
    const dir = join(folder, inside)
    await expect(openStores(dir)).rejects.toMatchObject({
      kind: 'store_io',
      message: expect.stringContaining(dir),
    })
  })

  test.skipIf(process.platform !== 'linux')(
    'can’t be there at all: one sentence, and no endless trying',
    async () => {
      await expect(openStores('/proc/mnem/store')).rejects.toMatchObject({
        kind: 'store_io',
        message: expect.stringContaining('/proc/mnem/store'),
      })
    },
  )

  test('is made with those above it, for this user alone', async () => {
    const dir = join(temporaryFolder(), 'a', 'b', 'c')
    await (await openStores(dir)).close()
    expect(statSync(dir).mode & 0o777).toBe(0o700)
  })

  test.skipIf(process.getuid?.() === 0)('may not be written to: one sentence', async () => {
    const dir = temporaryFolder()
    chmodSync(dir, 0o500)
    await expect(openStores(dir)).rejects.toMatchObject({ kind: 'store_io' })
  })
})

test.each([
  ['3.44.5', false],
  ['3.44.6', true],
  ['3.49.9', false],
  ['3.50.6', false],
  ['3.50.7', true],
  ['3.51.2', false],
  ['3.51.3', true],
  ['3.53.4', true],
  ['4.0.0', true],
  ['0', false],
])('SQLite %s is safe: %s', (version, safe) => {
  expect(isSafeSqlite(version)).toBe(safe)
})

describe('a damaged row', () => {
  test.each([
    [
      'its body',
      "UPDATE row SET body = replace(body, CAST('two' AS BLOB), CAST('TWO' AS BLOB)) WHERE seq = 2",
    ],
    ['its id', 'UPDATE row SET id = zeroblob(32) WHERE seq = 2'],
    ['its parent', 'UPDATE row SET parent = 3 WHERE seq = 2'],
    ['its place', 'UPDATE row SET line = 7 WHERE seq = 2'],
    ['its absence', 'DELETE FROM row WHERE seq = 2'],
  ])('is noticed by %s; the memory is not written to again, others are well', async (_what, sql) => {
    const { dir, file } = await madeStore()
    tamper(file, sql)
    const stores = await openStores(dir)
    await expect(stores.listing({ memory: 'prefs' })).rejects.toMatchObject({ kind: 'corrupt_store' })
    await expect(stores.add({ memory: 'prefs', items: [text('four')] })).rejects.toMatchObject({
      kind: 'corrupt_store',
    })
    expect(await stores.listing({ memory: 'other' })).toMatchObject({ count: 1 })
    await expect(stores.add({ memory: 'other', items: [text('more')] })).resolves.toMatchObject({
      ids: ['other:0000000001'],
    })
    await stores.close()
  })
})

describe('two that share a directory', () => {
  test('wait for each other’s lock without holding up the event loop, and lose nothing', async () => {
    const dir = temporaryFolder()
    const [a, b] = [await openStores(dir), await openStores(dir)]
    const adds = Array.from({ length: 100 }, (_, i) =>
      (i % 2 ? a : b).add({ memory: 'prefs', items: [text(`item ${i}`)] }),
    )
    const ids = (await Promise.all(adds)).flatMap((result) => result.ids)
    expect(new Set(ids).size).toBe(100)
    const [fromA, fromB] = [await a.listing({ memory: 'prefs' }), await b.listing({ memory: 'prefs' })]
    expect(fromA).toEqual(fromB)
    expect(fromA.count).toBe(100)
    expect((await a.log({ memory: 'prefs', limit: 1000 })).commits).toHaveLength(100)
    await a.close()
    await b.close()
  })

  test('a lock held past the bound is busy; the write goes through once it is free', async () => {
    const { dir, file } = await madeStore()
    const stores = await openStores(dir, { busyTimeout: 50 })
    const holder = new DatabaseSync(file)
    holder.exec('BEGIN IMMEDIATE')
    await expect(stores.add({ memory: 'prefs', items: [text('four')] })).rejects.toMatchObject({
      kind: 'busy',
      retryable: true,
    })
    expect(await stores.listing({ memory: 'prefs' })).toMatchObject({ count: 3 })
    holder.exec('COMMIT')
    holder.close()
    await expect(stores.add({ memory: 'prefs', items: [text('four')] })).resolves.toMatchObject({
      ids: ['prefs:0000000003'],
    })
    await stores.close()
  })

  test('a write that is cancelled while it waits for the lock returns before the lock is free', async () => {
    const { dir, file } = await madeStore()
    const stores = await openStores(dir)
    const holder = new DatabaseSync(file)
    holder.exec('BEGIN IMMEDIATE')
    const abort = new AbortController()
    const add = stores.add({ memory: 'prefs', items: [text('never')] }, { signal: abort.signal })
    setImmediate(() => abort.abort())
    await expect(add).rejects.toMatchObject({ kind: 'cancelled' })
    holder.exec('ROLLBACK')
    holder.close()
    await stores.add({ memory: 'prefs', items: [text('four')] })
    expect(await stores.listing({ memory: 'prefs' })).toMatchObject({ count: 4 })
    await stores.close()
  })
})

describe('damage that SQLite answers with "there is nothing" is noticed when the store is opened', () => {
  test.each([
    [
      'a memory that its name no longer finds',
      "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'row_place') WHERE name = 'sqlite_autoindex_memory_1'",
    ],
    ['a memory’s record that is another', "UPDATE memory SET prefix = 'x' WHERE name = 'other'"],
    [
      'an index over other columns',
      "UPDATE sqlite_master SET sql = replace(sql, 'line, depth', 'depth, line') WHERE name = 'row_place'",
    ],
    ['a table more', 'CREATE TABLE stranger (x)'],
  ])('%s', async (_what, sql) => {
    const { dir, file } = await madeStore()
    const db = new DatabaseSync(file, { defensive: false })
    db.exec('PRAGMA writable_schema = ON')
    db.exec(sql)
    db.close()
    await expect(openStores(dir)).rejects.toMatchObject({ kind: 'corrupt_store' })
  })
})

describe('damage beside the rows', () => {
  test.each([
    ['a branch that points at an older commit', 'UPDATE ref SET seq = 2 WHERE seq = 3'],
    ['values of another type', "UPDATE ref SET seq = 'x' WHERE seq = 3"],
    ['a number out of range', 'UPDATE ref SET seq = 9223372036854775807 WHERE seq = 3'],
    ['a branch that got lost', 'DELETE FROM ref'],
  ])('%s is corrupt_store, never another answer', async (_what, sql) => {
    const { dir, file } = await madeStore()
    tamper(file, sql)
    const stores = await openStores(dir)
    await expect(stores.listing({ memory: 'prefs' })).rejects.toMatchObject({ kind: 'corrupt_store' })
    await expect(stores.add({ memory: 'prefs', items: [text('four')] })).rejects.toMatchObject({
      kind: 'corrupt_store',
    })
    await stores.close()
  })

  test.each(['UPDATE entry SET value = key', 'UPDATE entry SET checksum = checksum + 1'])(
    'an index entry (%s)',
    async (sql) => {
      const { dir, file } = await madeStore()
      tamper(file, sql)
      const stores = await openStores(dir)
      await expect(stores.why({ memory: 'prefs', id: 'prefs:0000000001' })).rejects.toMatchObject({
        kind: 'corrupt_store',
      })
      await stores.close()
    },
  )
})

test('many adds at once share transactions: one appended row each, few commits of SQLite', async () => {
  const dir = temporaryFolder()
  const engine = await SqliteEngine.open(dir)
  let transactions = 0
  const counting = new Proxy(engine, {
    get(target, key) {
      if (key === 'transact') transactions++
      const member = Reflect.get(target, key)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  const { Stores } = await import('../src/stores.ts')
  const stores = new Stores(counting)
  await Promise.all(
    Array.from({ length: 64 }, (_, i) => stores.add({ memory: `m${i % 8}`, items: [text(String(i))] })),
  )
  expect(transactions).toBeLessThanOrEqual(3)
  expect((await stores.stats()).commits).toBe(64)
  await stores.close()
})
