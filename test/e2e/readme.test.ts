import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const python = join(root, process.platform === 'win32' ? '.venv/Scripts/python.exe' : '.venv/bin/python')

/** Run the first Python block of a page as a user would who pasted it into a file, twice; gives what it printed. */
function runTwice(page: string): [string, string] {
  const code = /```python\n([\s\S]*?)```/.exec(readFileSync(join(root, page), 'utf8'))?.[1]
  if (code === undefined) throw new Error(`${page} has no Python block`)
  const dir = mkdtempSync(join(tmpdir(), 'mnem-readme-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, 'quickstart.py'), code)
  const run = () => {
    const { status, stdout, stderr } = spawnSync(python, ['quickstart.py'], {
      cwd: dir,
      encoding: 'utf8',
      timeout: 60_000,
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    return stdout
  }
  return [run(), run()]
}

test('README’s quickstart works as it stands, and remembers when it is run again', () => {
  const [first, second] = runTwice('README.md')
  expect(first).toContain('1. Ada prefers metric units.')
  expect(first).toMatch(/prefs:0000000000 Ada prefers metric units\. <- [0-9a-f]{12} add item to prefs/)
  expect(first).not.toContain('prefs:0000000001')
  expect(second).toContain('2. Ada prefers metric units.')
  expect(second).toMatch(/prefs:0000000001 .* <- [0-9a-f]{12} add item to prefs/)
})

test('the client’s README does too', () => {
  const [first, second] = runTwice('client-py/README.md')
  expect(first.match(/metric units/g)).toHaveLength(1)
  expect(second.match(/metric units/g)).toHaveLength(2)
})

test('README’s server without a container serves its example, which remembers', () => {
  const blocks = readFileSync(join(root, 'README.md'), 'utf8').match(/```sh\n[\s\S]*?```/g) ?? []
  const block = blocks.find((one) => one.includes(' serve ') && one.includes('kill $!'))
  const lines = (block ?? '').split('\n').slice(1, -1)
  expect(lines).toHaveLength(3)
  // The client waits for the server, so nothing has to stand between the lines.
  const [serve, ask, end] = lines.map((line) =>
    line.replaceAll(/(?<= |^)(node_modules|server|examples|\.venv)\//g, `${root}$1/`),
  )
  const dir = mkdtempSync(join(tmpdir(), 'mnem-readme-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const script = `${serve}\n${ask}\n${ask}\n${end}\nwait $!\n`
  const { status, stdout, stderr } = spawnSync('sh', ['-c', script], {
    cwd: dir,
    encoding: 'utf8',
    timeout: 60_000,
  })
  expect({ status, python: stderr.includes('Traceback') }).toEqual({ status: 0, python: false })
  expect(stdout).toContain('This is visit 2.')
})
