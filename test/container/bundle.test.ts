import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { Logged, output, ROOT } from './process.ts'

const BUILD = join(ROOT, 'scripts', 'build.mjs')
const BUILT = join(ROOT, 'dist', 'mnem-sidecar.mjs')
const LICENCES = join(ROOT, 'dist', 'THIRD-PARTY-LICENSES.txt')

// Alone in a folder: nothing of the checkout may be needed.
const dir = mkdtempSync(join(tmpdir(), 'mnem-bundle-'))
const bundle = join(dir, 'mnem-sidecar.mjs')

beforeAll(() => {
  output(process.execPath, [BUILD])
  copyFileSync(BUILT, bundle)
})

afterAll(() => rmSync(dir, { recursive: true, force: true }))

test('a second build gives the same bytes', () => {
  const licences = readFileSync(LICENCES, 'utf8')
  output(process.execPath, [BUILD])
  expect(readFileSync(BUILT).equals(readFileSync(bundle))).toBe(true)
  expect(readFileSync(LICENCES, 'utf8')).toBe(licences)
})

test('the bundle knows its version', () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'server', 'package.json'), 'utf8'))
  expect(output(process.execPath, [bundle, '--version'])).toBe(`mnem-sidecar ${version}\n`)
})

test('an old Node gets a sentence from it, before anything that it can’t run', () => {
  const old = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'18.20.0'}})`
  const { status, stderr } = spawnSync(process.execPath, ['--import', old, bundle, '--version'], {
    encoding: 'utf8',
  })
  expect(status).toBe(4)
  expect(stderr).toMatch(/^mnem-sidecar needs Node 24 or newer, and .*\n$/)
})

test('it serves, and tells its figures', async () => {
  const server = new Logged(process.execPath, [
    ...[bundle, 'serve', '--store', join(dir, 'store'), '--http', '127.0.0.1:0'],
    ...['--listen', `unix:${join(dir, 'mnem.sock')}`],
  ])
  onTestFinished(() => {
    server.child.kill('SIGKILL')
  })
  await server.until('"msg":"ready"')
  const port = /"http_port":(\d+)/.exec(server.log)?.[1]
  const figures = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  expect(figures).toMatch(/^mnem_ready 1$/m)
  expect(figures).toMatch(/^process_resident_memory_bytes \d/m)
  server.child.kill('SIGTERM')
  expect(await server.ended).toBe(0)
})

test('the licences of what is in it are beside it', () => {
  const licences = readFileSync(LICENCES, 'utf8')
  const inside = new Set(
    Array.from(
      readFileSync(bundle, 'utf8').matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)/gm),
      ([, name]) => name,
    ),
  )
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'server', 'package.json'), 'utf8'))
  for (const name of Object.keys(dependencies).filter((one) => !one.startsWith('@mnem/'))) inside.add(name)
  for (const name of inside) expect(licences).toMatch(new RegExp(`^${name} \\d`, 'm'))
})
