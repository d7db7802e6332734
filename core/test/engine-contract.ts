import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Engine, EngineWriter, MemoryRecord, Row } from '../src/engine/engine.ts'

const bytes = (...values: number[]) => Uint8Array.from(values)
const id = (byte: number) => new Uint8Array(32).fill(byte)

/** A row on line 1; `depth` also tells its id and body, so that each is known by sight. */
async function append(
  writer: EngineWriter,
  memory: MemoryRecord,
  place: Partial<Row> & { depth: number },
): Promise<Row> {
  const seq = await writer.nextSeq()
  const row = {
    seq,
    memory: memory.id,
    line: 1,
    parents: [],
    id: id(place.depth),
    body: bytes(place.depth),
    ...place,
  }
  await writer.append(row)
  return row
}

const plain = (rows: Row[]) =>
  rows.map((row) => ({ ...row, id: Array.from(row.id), body: Array.from(row.body) }))

/** What every engine must do: run it with a way to open a fresh one. */
export function engineContract(
  name: string,
  open: () => Promise<{ engine: Engine; end: () => Promise<void> }>,
): void {
  describe(`${name} engine`, () => {
    let engine: Engine
    let end: () => Promise<void>

    beforeEach(async () => {
      ;({ engine, end } = await open())
    })

    afterEach(() => end())

    const create = (memory: string) =>
      engine.transact((writer) => writer.createMemory(memory, memory, 'main'))

    test('keeps memories by their exact name, in the order of the names’ bytes', async () => {
      const names = ['b', 'a', 'é', 'B', 'a b', '漢', '\u{1f469}', '\uffee', 'e\u0301']
      for (const memory of names) await create(memory)
      expect(await engine.memory('é')).toMatchObject({
        name: 'é',
        prefix: 'é',
        default_branch: 'main',
        epoch: 0,
      })
      expect(await engine.memory('A')).toBeUndefined()
      const listed = (await engine.memories('', undefined, 100)).map((record) => record.name)
      expect(listed).toEqual([...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))))
      expect((await engine.memories('', 'a', 2)).map((record) => record.name)).toEqual(['a b', 'b'])
      expect((await engine.memories('a', undefined, 100)).map((record) => record.name)).toEqual(['a', 'a b'])
      expect((await engine.memories('a', 'a', 100)).map((record) => record.name)).toEqual(['a b'])
      expect(await engine.memories('c', undefined, 100)).toEqual([])
    })

    test('refuses two memories of one name', async () => {
      await create('a')
      await expect(
        engine.transact(async (writer) => {
          if ((await writer.memory('a')) !== undefined) throw new Error('taken')
          return writer.createMemory('a', 'a', 'main')
        }),
      ).rejects.toThrow('taken')
      expect((await engine.counts()).memories).toBe(1)
    })

    test('gives rows back by position, as they were written', async () => {
      const memory = await create('a')
      const written = await engine.transact(async (writer) => {
        const root = await append(writer, memory, { depth: 0 })
        const child = await append(writer, memory, {
          depth: 1,
          parents: [root.seq],
          body: new Uint8Array(100_000).fill(7),
        })
        const merge = await append(writer, memory, { depth: 2, line: 2, parents: [child.seq, root.seq] })
        return [root, child, merge]
      })
      const seqs = written.map((row) => row.seq)
      expect(plain(await engine.rows(memory.id, seqs))).toEqual(plain(written))
      expect(plain(await engine.rows(memory.id, [...seqs].reverse()))).toEqual(plain([...written].reverse()))
      expect(plain(await engine.rows(memory.id, seqs.slice(1, 2)))).toEqual(plain(written.slice(1, 2)))
      expect(await engine.rows(memory.id, [])).toEqual([])
      expect([...seqs].sort((a, b) => a - b)).toEqual(seqs)
    })

    test('says corrupt_store for a row that is not there, or is of another memory', async () => {
      const [a, b] = [await create('a'), await create('b')]
      const row = await engine.transact((writer) => append(writer, a, { depth: 0 }))
      for (const seqs of [[row.seq + 1], [row.seq, row.seq + 1]]) {
        await expect(engine.rows(a.id, seqs)).rejects.toMatchObject({ kind: 'corrupt_store' })
      }
      await expect(engine.rows(b.id, [row.seq])).rejects.toMatchObject({ kind: 'corrupt_store' })
    })

    test('walks a line both ways, in bounds', async () => {
      const [memory, other] = [await create('a'), await create('b')]
      await engine.transact(async (writer) => {
        for (let depth = 0; depth < 10; depth++) await append(writer, memory, { depth })
        await append(writer, memory, { depth: 5, line: 2 })
        await append(writer, other, { depth: 3 })
      })
      const depths = async (...args: [number, number, { limit?: number; reverse?: boolean }?]) =>
        (await engine.line(memory.id, 1, ...args)).map((row) => row.depth)
      expect(await depths(0, 9)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
      expect(await depths(3, 5)).toEqual([3, 4, 5])
      expect(await depths(3, 100, { limit: 2 })).toEqual([3, 4])
      expect(await depths(0, 7, { limit: 2, reverse: true })).toEqual([7, 6])
      expect(await depths(10, 20)).toEqual([])
      expect((await engine.line(memory.id, 2, 0, 9)).map((row) => row.depth)).toEqual([5])
    })

    test('refuses a second row on a place that is taken', async () => {
      const memory = await create('a')
      await engine.transact((writer) => append(writer, memory, { depth: 0 }))
      await expect(
        engine.transact((writer) => append(writer, memory, { depth: 0, body: bytes(9) })),
      ).rejects.toThrow()
      expect((await engine.counts()).commits).toBe(1)
    })

    test('gives a line that no row has', async () => {
      const memory = await create('a')
      await engine.transact(async (writer) => {
        const line = await writer.newLine(memory.id)
        await append(writer, memory, { depth: 0, line })
        expect(await writer.newLine(memory.id)).not.toBe(line)
      })
    })

    test('lists branches by their names’ bytes, deletes one, and makes another the default', async () => {
      const [memory, other] = [await create('a'), await create('b')]
      await engine.transact(async (writer) => {
        for (const [seq, branch] of ['b', 'é', 'a', 'B'].entries())
          await writer.moveRef(memory.id, branch, undefined, seq)
        await writer.moveRef(other.id, 'x', undefined, 9)
      })
      const names = async () => (await engine.refs(memory.id)).map(({ branch, seq }) => `${branch} ${seq}`)
      expect(await names()).toEqual(['B 3', 'a 2', 'b 0', 'é 1'])
      expect(await engine.transact((writer) => writer.deleteRef(memory.id, 'a'))).toBe(true)
      expect(await engine.transact((writer) => writer.deleteRef(memory.id, 'a'))).toBe(false)
      expect(await engine.transact((writer) => writer.deleteRef(memory.id, 'x'))).toBe(false)
      expect(await names()).toEqual(['B 3', 'b 0', 'é 1'])
      await engine.transact((writer) => writer.setDefaultBranch(memory, 'b'))
      expect(await engine.memory('a')).toEqual({ ...memory, default_branch: 'b' })
      expect(await engine.memory('b')).toEqual(other)
    })

    test('moves a ref only from where it is expected', async () => {
      const [memory, other] = [await create('a'), await create('b')]
      const move = (expected: number | undefined, seq: number) =>
        engine.transact((writer) => writer.moveRef(memory.id, 'main', expected, seq))
      expect(await engine.ref(memory.id, 'main')).toBeUndefined()
      expect(await move(1, 2)).toBe(false)
      expect(await move(undefined, 1)).toBe(true)
      expect(await move(undefined, 5)).toBe(false)
      expect(await move(2, 5)).toBe(false)
      expect(await move(1, 5)).toBe(true)
      expect(await engine.ref(memory.id, 'main')).toBe(5)
      expect(await engine.ref(memory.id, 'Main')).toBeUndefined()
      expect(await engine.ref(other.id, 'main')).toBeUndefined()
    })

    test('keeps index entries in the order of their bytes, a memory’s own', async () => {
      const [memory, other] = [await create('a'), await create('b')]
      const keys = [bytes(1), bytes(1, 0), bytes(1, 255), bytes(2), bytes(128), bytes(255, 255)]
      await engine.transact(async (writer) => {
        for (const key of [...keys].reverse()) await writer.putEntry(memory.id, key, key)
        await writer.putEntry(other.id, bytes(1, 7), bytes())
        await writer.putEntry(memory.id, bytes(2), bytes(42))
      })
      const found = async (from: Uint8Array, to: Uint8Array, page?: { limit?: number; reverse?: boolean }) =>
        (await engine.entries(memory.id, from, to, page)).map(({ key }) => Array.from(key))
      expect(await found(bytes(), bytes(255, 255, 0))).toEqual(keys.map((key) => Array.from(key)))
      expect(await found(bytes(1), bytes(2))).toEqual([[1], [1, 0], [1, 255]])
      expect(await found(bytes(1), bytes(3), { limit: 1, reverse: true })).toEqual([[2]])
      expect(await found(bytes(3), bytes(4))).toEqual([])
      const [entry] = await engine.entries(memory.id, bytes(2), bytes(2, 0))
      expect(Array.from(entry?.value ?? [])).toEqual([42])
    })

    test('a transaction that throws leaves nothing', async () => {
      const memory = await create('a')
      const failing = engine.transact(async (writer) => {
        const row = await append(writer, memory, { depth: 0 })
        await writer.moveRef(memory.id, 'main', undefined, row.seq)
        await writer.putEntry(memory.id, bytes(1), bytes())
        await writer.createMemory('b', 'b', 'main')
        throw new Error('no')
      })
      await expect(failing).rejects.toThrow('no')
      expect(await engine.counts()).toMatchObject({ memories: 1, commits: 0 })
      expect(await engine.ref(memory.id, 'main')).toBeUndefined()
      expect(await engine.entries(memory.id, bytes(), bytes(255))).toEqual([])
      expect(await engine.memory('b')).toBeUndefined()
    })

    test('a reader never sees a transaction that is under way; its writer does', async () => {
      const memory = await create('a')
      await engine.transact(async (writer) => {
        const row = await append(writer, memory, { depth: 0 })
        await writer.moveRef(memory.id, 'main', undefined, row.seq)
        expect(await writer.ref(memory.id, 'main')).toBe(row.seq)
        expect(await engine.ref(memory.id, 'main')).toBeUndefined()
        expect(await engine.line(memory.id, 1, 0, 9)).toEqual([])
      })
      expect(await engine.ref(memory.id, 'main')).toBeDefined()
    })

    test('transactions run one after another, in the order of asking', async () => {
      const order: string[] = []
      const slow = engine.transact(async () => {
        order.push('first begins')
        await new Promise((resolve) => setImmediate(resolve))
        order.push('first ends')
      })
      const quick = engine.transact(async () => {
        order.push('second')
      })
      await Promise.all([slow, quick])
      expect(order).toEqual(['first begins', 'first ends', 'second'])
    })

    test('counts what there is', async () => {
      const [a, b] = [await create('a'), await create('b')]
      await engine.transact(async (writer) => {
        for (let depth = 0; depth < 3; depth++) await append(writer, a, { depth })
        await append(writer, b, { depth: 0 })
      })
      expect(await engine.counts()).toMatchObject({ memories: 2, commits: 4 })
      expect(await engine.counts(a.id)).toMatchObject({ commits: 3 })
    })

    test('writes another body in place of a row’s, and erases what was there', async () => {
      const memory = await create('a')
      const row = await engine.transact((writer) =>
        append(writer, memory, { depth: 0, body: bytes(7, 8, 9) }),
      )
      await engine.transact((writer) => writer.rewrite({ ...row, body: bytes(1) }))
      expect(plain(await engine.rows(memory.id, [row.seq]))).toEqual(plain([{ ...row, body: bytes(1) }]))
      await engine.erase([bytes(7, 8, 9)])
      await engine.erase()
      expect(plain(await engine.rows(memory.id, [row.seq]))).toEqual(plain([{ ...row, body: bytes(1) }]))
    })

    test('sets a memory’s epoch', async () => {
      const memory = await create('a')
      await engine.transact((writer) => writer.setEpoch(memory, 3))
      expect(await engine.memory('a')).toEqual({ ...memory, epoch: 3 })
    })

    test('keeps entries of no memory, whatever is deleted', async () => {
      const memory = await create('a')
      await engine.transact((writer) => writer.putEntry(0, bytes(1), bytes(2)))
      await engine.transact((writer) => writer.deleteMemory(memory.id))
      expect(await engine.entries(0, bytes(0), bytes(9))).toHaveLength(1)
    })

    test('closes after what runs', async () => {
      const running = engine.transact((writer) => writer.createMemory('a', 'a', 'main'))
      const closing = engine.close()
      await expect(running).resolves.toMatchObject({ name: 'a' })
      await closing
    })
  })
}
