import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isSafeSqlite } from '@mnem/core'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Every text file that is part of the repository. This folder's hold the patterns that they look for. */
const sources = names()
  .filter((name) => name !== '' && name !== 'LICENSE' && !name.startsWith('test/house/'))
  .flatMap((name) => {
    try {
      return [{ name, text: readFileSync(join(root, name), 'utf8') }]
    } catch {
      return []
    }
  })

function names(): string[] {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  if (status !== 0)
    throw new Error(`git could not list the files of ${root}, which has to be a clone: ${stderr}`)
  return stdout.split('\0')
}

const holding = (pattern: RegExp) => sources.filter(({ text }) => pattern.test(text)).map(({ name }) => name)

test('there are files to look at', () => {
  expect(sources.length).toBeGreaterThan(50)
})

test('nothing reads what lies beside the repository', () => {
  expect(holding(/\.\.\/shared\b/)).toEqual([])
})

test('no file names a place on somebody’s machine', () => {
  expect(holding(/\/(?:home\/[a-z]+|root|Users\/[A-Za-z]+|work|opt\/wheels)\/[\w.]/)).toEqual([])
})

test('no file names a package registry’s host', () => {
  expect(
    holding(
      /registry\.(?:npmjs|yarnpkg|npmmirror)|files\.pythonhosted|pypi\.org\/simple|crates\.io\/api|index\.crates\.io/,
    ),
  ).toEqual([])
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8')
  expect(lock).not.toContain('"resolved": "http')
})

test('the lock file pins the vite that every registry has', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  expect(lock.packages['node_modules/vite'].version).toBe('8.3.8')
})

test('the entry file and core agree on which SQLite is safe', () => {
  // The entry file must not import anything of ours before it has looked at the Node it runs on, so it has its own copy.
  const entry = readFileSync(join(root, 'server/bin/mnem-sidecar.mjs'), 'utf8')
  const own = /function isSafeSqlite[\s\S]*?\n}\n/.exec(entry)?.[0]
  const isSafeThere = new Function(`${own}; return isSafeSqlite`)() as (version: string) => boolean
  for (const minor of [0, 43, 44, 45, 49, 50, 51, 52, 60]) {
    for (const patch of [0, 2, 3, 5, 6, 7, 9]) {
      for (const version of [`3.${minor}.${patch}`, `4.${minor}.${patch}`, `2.${minor}.${patch}`]) {
        expect({ version, safe: isSafeThere(version) }).toEqual({ version, safe: isSafeSqlite(version) })
      }
    }
  }
})
