/**
 * What looking back costs in a long history beside a short one: milliseconds of each question, the median of several, at
 * 100 commits and at the number given, and how many times that is. Export and import in MB/s.
 *
 * node test/bench/history.ts [COMMITS]    default 100,000; takes a minute or two
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStores, type Stores } from '../../core/src/index.ts'

const SHORT = 100
const LONG = Number(process.argv[2] ?? 100_000)
const ROUNDS = 7
const memory = 'm'

async function build(stores: Stores, commits: number): Promise<string[]> {
  const ids: string[] = []
  for (let done = 0; done < commits; ) {
    const some = Math.min(512, commits - done)
    const adds = Array.from({ length: some }, (_, i) =>
      stores.add({
        memory,
        items: [
          { content: { type: 'text', text: `item ${done + i} ${'x'.repeat(90)}` }, mime_type: 'text/plain' },
        ],
      }),
    )
    for (const { commit } of await Promise.all(adds)) ids.push(commit)
    done += some
  }
  return ids
}

async function median(work: () => Promise<unknown>, rounds = ROUNDS): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const began = performance.now()
    await work()
    times.push(performance.now() - began)
  }
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)] as number
}

const id = (number: number) => `${memory}:${String(number).padStart(10, '0')}`

/** The questions, on a memory with these commits. */
function questions(
  stores: Stores,
  ids: readonly string[],
): Array<[string, () => Promise<unknown>, rounds?: number]> {
  const middle = Math.floor(ids.length / 2)
  const at = (index: number) => ids[index] as string
  return [
    ['log, 20', () => stores.log({ memory, limit: 20 })],
    ['log, 20 from the middle', () => stores.log({ memory, limit: 20, at: at(middle) })],
    ['why', () => stores.why({ memory, id: id(middle) })],
    ['history', () => stores.history({ memory, id: id(middle) })],
    ['changed', () => stores.changed({ memory, commit: at(middle) })],
    ['diff, 10 commits', () => stores.diff({ memory, from: at(middle), to: at(middle + 10) })],
    ['bisect, contains', () => stores.bisect({ memory, where: { contains: `item ${middle} ` } }), 3],
    ['bisect, probe', () => stores.bisect({ memory, probe: middle })],
    [
      'branch and delete',
      async () => {
        await stores.branch({ memory, name: 'b' })
        await stores.deleteBranch({ memory, name: 'b' })
      },
    ],
    ['verify', () => stores.verify({ memory }), 1],
  ]
}

async function transfer(stores: Stores): Promise<string> {
  const parts: string[] = []
  let began = performance.now()
  for (let after: string | undefined; ; ) {
    const part = await stores.exportPart({ memory, after })
    parts.push(part.text)
    if (part.next === undefined) break
    after = part.next
  }
  const megabytes = parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0) / 1e6
  const out = megabytes / ((performance.now() - began) / 1000)
  began = performance.now()
  const importer = stores.beginImport('copy')
  for (const part of parts) await importer.take(part)
  await importer.finish()
  return `${megabytes.toFixed(1)} MB; export ${out.toFixed(1)} MB/s, import ${(megabytes / ((performance.now() - began) / 1000)).toFixed(1)} MB/s`
}

const dir = mkdtempSync(join(tmpdir(), 'mnem-bench-'))
try {
  const short = await openStores(join(dir, 'short'))
  const long = await openStores(join(dir, 'long'))
  const few = questions(short, await build(short, SHORT))
  const many = questions(long, await build(long, LONG))
  process.stdout.write(`${''.padEnd(26)}${String(SHORT).padStart(10)}${String(LONG).padStart(12)}   times\n`)
  for (const [index, [name, work, rounds]] of many.entries()) {
    const [, small] = few[index] as (typeof few)[number]
    await small()
    const [a, b] = [await median(small), await median(work, rounds)]
    process.stdout.write(
      `${name.padEnd(26)}${a.toFixed(2).padStart(7)} ms${b.toFixed(2).padStart(9)} ms${(b / a).toFixed(1).padStart(8)}\n`,
    )
  }
  process.stdout.write(`${await transfer(long)}\n`)
  await short.close()
  await long.close()
} finally {
  rmSync(dir, { recursive: true, force: true })
}
