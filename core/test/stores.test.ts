import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MemoryEngine } from '../src/engine/memory.ts'
import { SqliteEngine } from '../src/engine/sqlite.ts'
import { canonicalJson, JsonText } from '../src/json.ts'
import { Stores } from '../src/stores.ts'
import type { Content, NewItem } from '../src/types.ts'
import { jsonValue, spell } from './arbitrary.ts'
import { temporaryFolder } from './temporary.ts'

const text = (value: string): NewItem => ({ content: { type: 'text', text: value }, mime_type: 'text/plain' })
const json = (value: string): Content => ({ type: 'json', json: new JsonText(value) })
const memory = 'prefs'
const id = (number: number) => `prefs:${String(number).padStart(10, '0')}`

const engines = [
  ['in memory', async () => new MemoryEngine()],
  ['SQLite', async () => SqliteEngine.open(temporaryFolder())],
] as const

describe.each(engines)('stores, %s', (_name, open) => {
  let stores: Stores

  beforeEach(async () => {
    stores = new Stores(await open(), { itemBytes: 10_000, itemsPerAdd: 100, listingBytes: 4000 })
  })

  afterEach(() => stores.close())

  const addText = (...values: string[]) => stores.add({ memory, items: values.map(text) })
  const items = async (at?: string | number) =>
    ((await stores.listing({ memory, at })).items ?? []).map((item) => JSON.parse(item.text))
  const texts = async (at?: string | number) => (await items(at)).map((item) => item.content.text)

  test('an add is one commit, whatever it holds', async () => {
    const one = await addText('a')
    const many = await addText('b', 'c', 'd')
    expect(one.ids).toEqual([id(0)])
    expect(many.ids).toEqual([id(1), id(2), id(3)])
    const { commits } = await stores.log({ memory })
    expect(commits.map(({ message, author, parents }) => ({ message, author, parents }))).toEqual([
      { message: 'add 3 items to prefs', author: 'agent', parents: [one.commit] },
      { message: 'add item to prefs', author: 'agent', parents: [] },
    ])
    expect(await texts()).toEqual(['a', 'b', 'c', 'd'])
  })

  test('reading a memory that nobody has written answers as an empty one and makes nothing', async () => {
    expect(await stores.listing({ memory })).toEqual({
      commit: null,
      epoch: 0,
      branch: 'main',
      count: 0,
      mode: 'full',
      items: [],
    })
    expect(await stores.listing({ memory, max_items: 3 })).toMatchObject({ items: [], omitted: 0 })
    expect(await stores.log({ memory })).toEqual({ commits: [] })
    expect(await stores.commit({ memory })).toBeNull()
    expect(await stores.clear({ memory })).toEqual({ commit: null, forgotten: 0 })
    expect(await stores.memoryStats(memory)).toMatchObject({ commit: null, commits: 0, items: 0 })
    await expect(stores.why({ memory, id: id(0) })).rejects.toMatchObject({ kind: 'not_found' })
    await expect(stores.forget({ memory, ids: [id(0)] })).rejects.toMatchObject({ kind: 'not_found' })
    await expect(stores.listing({ memory, at: 'abcd' })).rejects.toMatchObject({ kind: 'invalid_ref' })
    await expect(stores.listing({ memory, branch: 'other' })).rejects.toMatchObject({ kind: 'not_found' })
    await expect(stores.add({ memory, branch: 'other', items: [text('a')] })).rejects.toMatchObject({
      kind: 'not_found',
    })
    expect(await stores.stats()).toMatchObject({ memories: 0, commits: 0 })
  })

  test('every kind of content, metadata and provenance comes back as it went in', async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII='
    const added: NewItem[] = [
      text('é漢👩‍👩‍👧\u0000\r\n\u2028'),
      {
        content: json('{"b":1,"2":1.0,"1":-0.0}'),
        mime_type: 'application/json',
        metadata: canonicalJson('{"k":[null]}'),
      },
      {
        content: { type: 'bytes', base64: 'AAH/' },
        mime_type: 'application/octet-stream',
        metadata: canonicalJson('{}'),
      },
      { content: { type: 'image', base64: png }, mime_type: 'image/*', metadata: null },
      {
        content: json('{"__bytes_b64__":"AAH/"}'),
        mime_type: 'x/y',
        provenance: { source: '', note: 'why' },
        event_time: -1,
      },
      { content: json('{"a":1,"__json__x":2}'), mime_type: 'x/y' },
      { content: json('{"__json__":{"__json__":1}}'), mime_type: 'x/y' },
      { content: json('{"__image_b64__":"no","__proto__":{}}'), mime_type: '' },
    ]
    await stores.add({ memory, items: added })
    const { items: listed = [] } = await stores.listing({ memory })
    expect(listed.map(String)).toEqual(
      added.map((item, index) => {
        const content =
          'json' in item.content ? { ...item.content, json: item.content.json.text } : item.content
        const contentText = JSON.stringify(content).replace(
          /"json":"(.*)"}$/,
          (_all, inner) => `"json":${JSON.parse(`"${inner}"`)}}`,
        )
        let out = `{"id":"${id(index)}","content":${contentText},"mime_type":${JSON.stringify(item.mime_type)}`
        if (item.metadata) out += `,"metadata":${item.metadata.text}`
        if (item.provenance) out += `,"provenance":{"source":"","note":"why"}`
        if (item.event_time !== undefined) out += `,"event_time":${item.event_time}`
        return `${out}}`
      }),
    )
  })

  test('any JSON object comes back letter by letter', async () => {
    const objects = jsonValue.filter((value) => value instanceof Map).map(spell)
    await fc.assert(
      fc.asyncProperty(objects, async (object) => {
        await stores.clear({ memory })
        await stores.add({
          memory,
          items: [{ content: json(object), mime_type: 'x', metadata: new JsonText(object) }],
        })
        const [item] = (await stores.listing({ memory })).items ?? []
        const metadata = `,"metadata":${object}`
        expect(item?.text).toBe(
          `{"id":"${id(0)}","content":{"type":"json","json":${object}},"mime_type":"x"${metadata}}`,
        )
      }),
      { numRuns: 50 },
    )
  })

  test('clear forgets all and begins to number anew; what was there stays readable', async () => {
    const { commit: before } = await addText('a', 'b')
    const cleared = await stores.clear({ memory })
    expect(cleared.forgotten).toBe(2)
    expect((await stores.commit({ memory }))?.message).toBe('forget 3 nodes')
    expect(await texts()).toEqual([])
    expect(await stores.clear({ memory })).toEqual({ commit: null, forgotten: 0 })
    expect((await addText('c')).ids).toEqual([id(0)])
    expect(await texts(before)).toEqual(['a', 'b'])
    expect(await texts(cleared.commit ?? '')).toEqual([])
    expect(await texts()).toEqual(['c'])
  })

  test('forget takes all of the ids or none, and gives no number twice', async () => {
    await addText('a', 'b', 'c', 'd')
    for (const ids of [
      [id(1), id(9)],
      [id(1), 'prefs:_seq'],
      [id(1), 'other:0000000000'],
      [id(1), ''],
    ]) {
      await expect(stores.forget({ memory, ids })).rejects.toMatchObject({ kind: 'not_found' })
    }
    await expect(stores.forget({ memory, ids: [id(1), id(1)] })).rejects.toMatchObject({
      data: { path: 'ids[1]' },
    })
    await expect(stores.forget({ memory, ids: [] })).rejects.toMatchObject({ data: { path: 'ids' } })
    expect(await texts()).toEqual(['a', 'b', 'c', 'd'])
    expect(await stores.forget({ memory, ids: [id(3)] })).toMatchObject({ forgotten: 1 })
    expect((await stores.commit({ memory }))?.message).toBe(`forget ${id(3)}`)
    expect(await stores.forget({ memory, ids: [id(2), id(0)] })).toMatchObject({ forgotten: 2 })
    expect((await stores.commit({ memory }))?.message).toBe('forget 2 nodes')
    expect((await addText('e')).ids).toEqual([id(4)])
    expect(await texts()).toEqual(['b', 'e'])
    await stores.forget({ memory, ids: [id(1), id(4)] })
    expect(await stores.clear({ memory })).toMatchObject({ commit: expect.any(String), forgotten: 0 })
    expect((await stores.commit({ memory }))?.message).toBe('forget 1 node')
  })

  test('forget with `at` refuses a number that names another item by now', async () => {
    const { commit: read } = await addText('a', 'b')
    await stores.clear({ memory })
    await addText('c', 'd')
    await expect(stores.forget({ memory, ids: [id(0)], at: read })).rejects.toMatchObject({
      kind: 'not_found',
    })
    expect(await texts()).toEqual(['c', 'd'])
    const { commit: current } = await addText('e')
    expect(await stores.forget({ memory, ids: [id(0)], at: current })).toMatchObject({ forgotten: 1 })
  })

  test('why names the commit that brought an item in, as of any commit', async () => {
    const first = await addText('a')
    await addText('b')
    await stores.clear({ memory })
    const again = await stores.add({
      memory,
      items: [text('c')],
      author: 'reviewer',
      message: 'correct it',
      time: 5,
    })
    expect(await stores.why({ memory, id: id(0) })).toMatchObject({
      commit: { id: again.commit, author: 'reviewer', message: 'correct it', time: 5 },
    })
    const then = await stores.why({ memory, id: id(0), at: first.commit })
    expect(then.commit.id).toBe(first.commit)
    expect(JSON.parse(then.item.text).content.text).toBe('a')
    for (const lost of [id(1), 'prefs:_seq', 'nonsense', 'prefs:1']) {
      await expect(stores.why({ memory, id: lost })).rejects.toMatchObject({ kind: 'not_found' })
    }
    await expect(stores.why({ memory, id: id(1), at: first.commit })).rejects.toMatchObject({
      kind: 'not_found',
    })
  })

  test('a commit-ish is a branch or a prefix of at least four digits', async () => {
    const { commit } = await addText('a')
    await addText('b')
    for (const at of [commit, commit.slice(0, 20), commit.slice(0, 16), commit.slice(0, 7)])
      expect(await texts(at)).toEqual(['a'])
    expect(await texts('main')).toEqual(['a', 'b'])
    for (const at of [
      commit.slice(0, 3),
      commit.toUpperCase(),
      `${commit}0`,
      'HEAD',
      '',
      'main~1',
      `${commit.slice(0, 63)}x`,
    ]) {
      await expect(stores.listing({ memory, at })).rejects.toMatchObject({ kind: 'invalid_ref' })
    }
  })

  test('an ambiguous prefix names its candidates', async () => {
    const byPrefix = new Map<string, string[]>()
    for (let time = 1; ; time++) {
      const { commit } = await stores.add({ memory, items: [text('x')], time })
      await stores.clear({ memory, time })
      const prefix = commit.slice(0, 4)
      const found = [...(byPrefix.get(prefix) ?? []), commit]
      byPrefix.set(prefix, found)
      if (found.length < 2) continue
      const error = await stores.commit({ memory, at: prefix }).catch((caught) => caught)
      expect(error).toMatchObject({
        kind: 'invalid_ref',
        data: { candidates: expect.arrayContaining(found) },
      })
      expect(error.message).toContain('more digits')
      break
    }
  })

  test('a time names the first commit, from the head back, that is not later', async () => {
    for (const time of [1000, 1200, 900, 1230])
      await stores.add({ memory, items: [text(String(time))], time })
    expect(await texts(1230)).toEqual(['1000', '1200', '900', '1230'])
    expect(await texts(1229)).toEqual(['1000', '1200', '900'])
    expect(await texts(1100)).toEqual(['1000', '1200', '900'])
    expect(await texts(899)).toEqual([])
    expect(await stores.commit({ memory, at: 899 })).toBeNull()
    expect((await stores.log({ memory })).commits.map(({ time }) => time)).toEqual([1230, 900, 1200, 1000])
    expect((await stores.log({ memory, since: 1000 })).commits.map(({ time }) => time)).toEqual([
      1230, 1200, 1000,
    ])
  })

  test('a log comes in pages', async () => {
    for (let i = 0; i < 7; i++) await addText(String(i))
    const whole = await stores.log({ memory })
    expect(whole.commits).toHaveLength(7)
    expect(whole.next).toBeUndefined()
    const seen = []
    for (let after: string | undefined; ; ) {
      const page = await stores.log({ memory, limit: 3, after })
      seen.push(...page.commits)
      if (page.next === undefined) break
      after = page.next
    }
    expect(seen).toEqual(whole.commits)
    const middle = whole.commits[3]?.id
    expect((await stores.log({ memory, at: middle })).commits).toEqual(whole.commits.slice(3))
    await expect(stores.log({ memory, at: middle, after: whole.commits[0]?.id })).rejects.toMatchObject({
      kind: 'invalid_ref',
    })
    await expect(stores.log({ memory, limit: 0 })).rejects.toMatchObject({ kind: 'invalid_params' })
  })

  describe('a read that says what it has', () => {
    test('gets nothing when nothing changed, and only the news when items were appended', async () => {
      await addText('a', 'b')
      const first = await stores.listing({ memory })
      const have = { commit: first.commit ?? '', count: 2, epoch: 0 }
      expect(await stores.listing({ memory, have })).toEqual({
        commit: have.commit,
        epoch: 0,
        branch: 'main',
        count: 2,
        mode: 'unchanged',
      })
      await addText('c')
      await addText('d', 'e')
      const news = await stores.listing({ memory, have })
      expect(news).toMatchObject({ mode: 'appended', count: 5 })
      expect(news.items?.map((item) => JSON.parse(item.text).id)).toEqual([id(2), id(3), id(4)])
    })

    test('gets all when anything else happened, or when it has what never was', async () => {
      await addText('a', 'b')
      const commit = (await stores.listing({ memory })).commit ?? ''
      await stores.forget({ memory, ids: [id(0)] })
      await addText('c')
      const full = { mode: 'full', count: 2 }
      for (const have of [
        { commit, count: 2, epoch: 0 },
        { commit: '0'.repeat(64), count: 1, epoch: 0 },
        { commit: 'main', count: 1, epoch: 0 },
      ]) {
        expect(await stores.listing({ memory, have })).toMatchObject(full)
      }
      const now = await stores.listing({ memory })
      const head = now.commit ?? ''
      expect(await stores.listing({ memory, have: { commit: head, count: 2, epoch: 1 } })).toMatchObject(full)
      expect(await stores.listing({ memory, have: { commit: head, count: 3, epoch: 0 } })).toMatchObject(full)
      await addText('d')
      expect(await stores.listing({ memory, have: { commit: head, count: 3, epoch: 0 } })).toMatchObject({
        mode: 'full',
        count: 3,
      })
      expect(await stores.listing({ memory, have: { commit: head, count: 2, epoch: 0 } })).toMatchObject({
        mode: 'appended',
      })
    })

    test('a listing over the limit comes in parts that make the whole', async () => {
      for (let i = 0; i < 40; i++) await addText(`${i} ${'x'.repeat(200)}`)
      const at = (await stores.commit({ memory }))?.id
      const parts: string[] = []
      for (let count = 0; ; ) {
        const have = count === 0 ? undefined : { commit: at ?? '', count, epoch: 0 }
        const part = await stores.listing({ memory, at, have })
        expect(part.count).toBe(40)
        parts.push(...(part.items ?? []).map(String))
        count = parts.length
        if (part.more === undefined) break
        await addText('another that comes between')
      }
      expect(parts).toHaveLength(40)
      expect(parts.map((part) => Number.parseInt(JSON.parse(part).content.text, 10))).toEqual(
        Array.from({ length: 40 }, (_, i) => i),
      )
    })

    test('one item larger than the limit still gets through', async () => {
      await addText('x'.repeat(6000), 'small')
      const first = await stores.listing({ memory })
      expect(first.items).toHaveLength(1)
      expect(first.more).toBe(true)
    })
  })

  test('a batch is one row: a listing reads it once, however many items it shows', async () => {
    const engine = await open()
    let read = 0
    const counting = new Proxy(engine, {
      get(target, key) {
        const member = Reflect.get(target, key)
        if (typeof member !== 'function') return member
        return (...args: unknown[]) => {
          if (key === 'rows') read += (args[1] as number[]).length
          return member.apply(target, args)
        }
      },
    })
    const many = new Stores(counting)
    await many.add({ memory, items: Array.from({ length: 3000 }, (_, i) => text(String(i))) })
    read = 0
    expect((await many.listing({ memory })).items).toHaveLength(3000)
    expect(read).toBeLessThanOrEqual(2)
    await many.close()
  })

  test('long reads let others run meanwhile', async () => {
    const many = new Stores(await open(), { itemsPerAdd: 100_000 })
    await many.add({
      memory,
      items: Array.from({ length: 30_000 }, (_, i) => text(`${i} ${'x'.repeat(200)}`)),
    })
    let turns = 0
    let reading = true
    const turn = () => {
      turns++
      if (reading) setImmediate(turn)
    }
    setImmediate(turn)
    const { items: listed } = await many.listing({ memory })
    reading = false
    expect(listed).toHaveLength(30_000)
    expect(turns).toBeGreaterThan(2)
    await many.close()
  })

  test('a budget keeps the newest that fit, oldest first, and says what it left out', async () => {
    for (let i = 0; i < 10; i++) await addText(String(i))
    const size = Buffer.byteLength((await stores.listing({ memory })).items?.[0]?.text ?? '')
    const budget = async (request: object) => {
      const { items: kept = [], omitted, count, mode } = await stores.listing({ memory, ...request })
      return { kept: kept.map((item) => JSON.parse(item.text).content.text).join(''), omitted, count, mode }
    }
    expect(await budget({ max_items: 3 })).toEqual({ kept: '789', omitted: 7, count: 10, mode: 'full' })
    expect(await budget({ max_items: 0 })).toEqual({ kept: '', omitted: 10, count: 10, mode: 'full' })
    expect(await budget({ max_items: 99 })).toEqual({
      kept: '0123456789',
      omitted: 0,
      count: 10,
      mode: 'full',
    })
    expect(await budget({ max_bytes: size * 4 + 1 })).toMatchObject({ kept: '6789', omitted: 6 })
    expect(await budget({ max_bytes: size - 1 })).toMatchObject({ kept: '', omitted: 10 })
    expect(await budget({ max_items: 2, max_bytes: size * 4 })).toMatchObject({ kept: '89', omitted: 8 })
  })

  describe('an idempotency key', () => {
    test('gives the first answer again and changes nothing, after a clear too', async () => {
      const request = { memory, items: [text('a'), text('b')], idempotency_key: 'k' }
      const first = await stores.add(request)
      expect(await stores.add(request)).toEqual({ ...first, replayed: true })
      const clear = { memory, idempotency_key: 'c' }
      const cleared = await stores.clear(clear)
      await addText('c', 'd', 'e')
      expect(await stores.clear(clear)).toEqual({ ...cleared, replayed: true })
      expect(await stores.add(request)).toEqual({ ...first, replayed: true })
      const forget = { memory, ids: [id(1), id(0)], idempotency_key: 'f' }
      const forgotten = await stores.forget(forget)
      expect(await stores.forget(forget)).toEqual({ ...forgotten, replayed: true })
      expect(await texts()).toEqual(['e'])
    })

    test('also stands for a write that had nothing to do', async () => {
      const clear = { memory, idempotency_key: 'c' }
      expect(await stores.clear(clear)).toEqual({ commit: null, forgotten: 0 })
      await addText('a')
      expect(await stores.clear(clear)).toEqual({ commit: null, forgotten: 0, replayed: true })
      expect(await texts()).toEqual(['a'])
      expect((await stores.memories()).memories).toHaveLength(1)
    })

    test('of another request is a conflict', async () => {
      const request = { memory, items: [text('a')], idempotency_key: 'k' }
      await stores.add(request)
      const conflict = { kind: 'conflict' }
      await expect(stores.add({ ...request, items: [text('b')] })).rejects.toMatchObject(conflict)
      await expect(stores.add({ ...request, items: [text('a'), text('a')] })).rejects.toMatchObject(conflict)
      await expect(stores.add({ ...request, author: 'x' })).rejects.toMatchObject(conflict)
      await expect(stores.add({ ...request, message: 'x' })).rejects.toMatchObject(conflict)
      await expect(stores.add({ ...request, time: 1 })).rejects.toMatchObject(conflict)
      await expect(stores.clear({ memory, idempotency_key: 'k' })).rejects.toMatchObject(conflict)
      expect(await texts()).toEqual(['a'])
      await stores.add({ ...request, memory: 'another' })
    })

    test('equal adds without one are two items', async () => {
      await addText('a')
      await addText('a')
      expect(await texts()).toEqual(['a', 'a'])
    })

    test('sent twice in one go lands once', async () => {
      const request = { memory, items: [text('a')], idempotency_key: 'k' }
      const [first, second] = await Promise.all([stores.add(request), stores.add(request)])
      expect(second).toEqual({ ...first, replayed: true })
      expect(await texts()).toEqual(['a'])
    })
  })

  describe('refuses, naming the path, and stores nothing:', () => {
    const bad = (item: Partial<NewItem>): NewItem => ({ ...text('x'), ...item })
    test.each<[string, NewItem[], string]>([
      ['no items', [], 'items'],
      ['half a surrogate in text', [text('ok'), text('a\ud800b')], 'items[1].content.text'],
      ['half a surrogate in a key', [bad({ content: json('{"\\udfff":1}') })], 'items[0].content.json[""]'],
      [
        'half a surrogate in provenance',
        [bad({ provenance: { note: '\ud800' } })],
        'items[0].provenance.note',
      ],
      ['half a surrogate in the mime type', [bad({ mime_type: '\ud800' })], 'items[0].mime_type'],
      ['a number out of range', [bad({ metadata: new JsonText('{"a":[1e999]}') })], 'items[0].metadata.a[0]'],
      ['duplicate keys', [bad({ content: json('{"a":1,"a":1}') })], 'items[0].content.json.a'],
      ['JSON that is no object', [bad({ content: json('[1]') })], 'items[0].content.json'],
      ['metadata that is no object', [bad({ metadata: new JsonText('[]') })], 'items[0].metadata'],
      [
        'bytes that are no base64',
        [bad({ content: { type: 'bytes', base64: 'a' } })],
        'items[0].content.base64',
      ],
      [
        'an image that is no PNG',
        [bad({ content: { type: 'image', base64: '/9j/' } })],
        'items[0].content.base64',
      ],
      ['a time that is no integer', [bad({ event_time: 1.5 })], 'items[0].event_time'],
      ['an item too large', [text('x'.repeat(10_000))], 'items[0]'],
      ['too many items', Array.from({ length: 101 }, () => text('x')), 'items'],
    ])('%s', async (_what, added, path) => {
      await expect(stores.add({ memory, items: added })).rejects.toMatchObject({ data: { path } })
      expect(await stores.stats()).toMatchObject({ memories: 0, commits: 0 })
    })

    test.each(['', 'a\nb', 'a\u0000', 'a\u009f', '\ud800', 'é'.repeat(128)])('the name %j', async (name) => {
      const refused = { kind: 'invalid_params', data: { path: 'memory' } }
      await expect(stores.add({ memory: name, items: [text('x')] })).rejects.toMatchObject(refused)
      await expect(stores.listing({ memory: name })).rejects.toMatchObject(refused)
      expect(await stores.stats()).toMatchObject({ memories: 0 })
    })
  })

  test('names are data: any text is a memory of its own', async () => {
    const names = [
      '../../etc/passwd',
      '/abs',
      'CON',
      'a.',
      'A',
      'a',
      'é',
      'e\u0301',
      '👩‍👩‍👧'.repeat(14),
      ' ',
      'x:0000000000',
      "'; DROP TABLE row; --",
    ]
    for (const name of names) await stores.add({ memory: name, items: [text(name)] })
    for (const name of names) {
      const [item] = (await stores.listing({ memory: name })).items ?? []
      expect(JSON.parse(item?.text ?? '')).toMatchObject({
        id: `${name}:0000000000`,
        content: { text: name },
      })
    }
    const { memories } = await stores.memories()
    expect(memories.map(({ name }) => name)).toEqual(
      [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
    const page = await stores.memories({ limit: 5 })
    const rest = await stores.memories({ after: page.next })
    expect([...page.memories, ...rest.memories]).toEqual(memories)
    expect((await stores.memories({ limit: names.length })).next).toBeUndefined()
  })

  test('writes take effect in the order of the calls, each its own commit', async () => {
    const results = await Promise.all([
      addText('a'),
      addText('b'),
      stores.forget({ memory, ids: [id(0)] }),
      stores.clear({ memory }),
      addText('c'),
      stores.forget({ memory, ids: [id(7)] }).catch((error) => error.kind),
      addText('d'),
    ])
    expect(results[5]).toBe('not_found')
    expect(await texts()).toEqual(['c', 'd'])
    expect((await stores.log({ memory })).commits.map(({ message }) => message)).toEqual([
      'add item to prefs',
      'add item to prefs',
      'forget 2 nodes',
      `forget ${id(0)}`,
      'add item to prefs',
      'add item to prefs',
    ])
  })

  test('every read at any commit gives exactly what was there', async () => {
    const operation = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({ add: fc.array(fc.string({ maxLength: 5 }), { minLength: 1, maxLength: 3 }) }),
      },
      { weight: 2, arbitrary: fc.record({ forget: fc.array(fc.nat(20), { minLength: 1, maxLength: 3 }) }) },
      { weight: 1, arbitrary: fc.constant({ clear: true }) },
    )
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 25 }), async (operations) => {
        const name = `run ${run++}`
        const model: { commit: string; items: string[] }[] = []
        let live = new Map<string, string>()
        for (const op of operations as { add?: string[]; forget?: number[]; clear?: true }[]) {
          if (op.add !== undefined) {
            const { commit, ids } = await stores.add({ memory: name, items: op.add.map(text) })
            for (const [index, added] of ids.entries()) live.set(added, (op.add as string[])[index] as string)
            model.push({ commit, items: Array.from(live.values()) })
          } else if (op.forget !== undefined) {
            const ids = Array.from(new Set(op.forget.map((n) => Array.from(live.keys())[n]))).filter(
              (x) => x !== undefined,
            )
            if (ids.length === 0) continue
            const { commit } = await stores.forget({ memory: name, ids })
            for (const gone of ids) live.delete(gone)
            model.push({ commit: commit ?? '', items: Array.from(live.values()) })
          } else {
            const { commit } = await stores.clear({ memory: name })
            live = new Map()
            if (commit !== null) model.push({ commit, items: [] })
          }
        }
        for (const { commit, items: expected } of model) {
          const { items: listed = [] } = await stores.listing({ memory: name, at: commit })
          expect(listed.map((item) => JSON.parse(item.text).content.text)).toEqual(expected)
        }
      }),
      { numRuns: 25 },
    )
  })
})
