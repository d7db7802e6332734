import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Every text file that is part of the repository. */
const sources = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .stdout.split('\0')
  .filter((name) => name !== '' && name !== 'LICENSE' && !name.startsWith('test/house/'))
  .flatMap((name) => {
    try {
      return [{ name, text: readFileSync(join(root, name), 'utf8') }]
    } catch {
      return []
    }
  })

const holding = (pattern: RegExp) => sources.filter(({ text }) => pattern.test(text)).map(({ name }) => name)

test('there are files to look at', () => {
  expect(sources.length).toBeGreaterThan(50)
})

test('nothing reads what lies beside the repository', () => {
  expect(holding(/\.\.\/shared\b/)).toEqual([])
})

test('no file names a place on somebody’s machine', () => {
  expect(holding(/\/(?:home\/[a-z]+|root|Users\/[A-Za-z]+|work)\/[\w.]/)).toEqual([])
})

test('no file names a package registry’s host', () => {
  expect(holding(/registry\.npmjs|registry\.yarnpkg|files\.pythonhosted|crates\.io\/api/)).toEqual([])
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8')
  expect(lock).not.toContain('"resolved": "http')
})

test('the lock file pins the vite that every registry has', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  expect(lock.packages['node_modules/vite'].version).toBe('8.3.8')
})
