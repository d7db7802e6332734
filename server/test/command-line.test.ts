import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { readCommandLine } from '../src/command-line.ts'
import { UsageError } from '../src/usage.ts'
import { ENTRY, tempDir } from './daemon.ts'

function run(
  args: string[],
  options: { node?: string; env?: Record<string, string>; entry?: string; uid?: number } = {},
) {
  const { node = process.execPath, env = {}, entry = ENTRY, uid } = options
  const { status, stdout, stderr } = spawnSync(node, [entry, ...args], {
    env: { ...process.env, ...env },
    input: '',
    encoding: 'utf8',
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  return { status, stdout, stderr }
}

/** One sentence, for people: no trace, no second line. */
function expectOneSentence(stderr: string): void {
  expect(stderr).toMatch(/^mnem-sidecar[: ][^\n]+\.\n$/)
  expect(stderr).not.toMatch(/\bat .*:\d+:\d+/)
}

describe('the command line', () => {
  it('reads what stdio needs', () => {
    const argv = ['stdio', '--store', 'd', '--log-level=debug', '--parent-pid', '12']
    expect(readCommandLine(argv, {})).toEqual({ name: 'stdio', store: 'd', logLevel: 'debug', parentPid: 12 })
  })

  it('takes the level from MNEM_LOG, and the option before it', () => {
    const level = (argv: string[], env: object) => {
      const command = readCommandLine(['stdio', '--store', 'd', ...argv], env as NodeJS.ProcessEnv)
      return command.name === 'stdio' ? command.logLevel : undefined
    }
    expect(level([], {})).toBe('info')
    expect(level([], { MNEM_LOG: '' })).toBe('info')
    expect(level([], { MNEM_LOG: 'warn' })).toBe('warn')
    expect(level(['--log-level', 'error'], { MNEM_LOG: 'warn' })).toBe('error')
  })

  it.each<[string, string[], RegExp]>([
    ['no command', [], /stdio --store DIR/],
    ['another command', ['push', '--store', 'd'], /"push".*stdio, serve, health, token/],
    ['no store', ['stdio'], /--store DIR/],
    ['an empty store', ['stdio', '--store', ''], /--store DIR/],
    ['a store without its value', ['stdio', '--store'], /--store/],
    ['an unknown flag', ['stdio', '--store', 'd', '--stroe', 'e'], /--stroe/],
    ['one argument too many', ['stdio', 'd', '--store', 'd'], /"d"/],
    ['an unknown level', ['stdio', '--store', 'd', '--log-level', 'loud'], /--log-level is "loud".*debug/],
    ['a parent that is no number', ['stdio', '--store', 'd', '--parent-pid', '1x'], /--parent-pid is "1x"/],
  ])('refuses %s in one sentence', (_what, argv, message) => {
    expect(() => readCommandLine(argv, {})).toThrow(UsageError)
    expect(() => readCommandLine(argv, {})).toThrow(message)
  })
})

describe('mnem-sidecar', () => {
  it('--help says what there is, on stdout', () => {
    const { status, stdout, stderr } = run(['--help'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    for (const word of ['stdio', '--store', '--log-level', '--parent-pid', 'MNEM_LOG', 'Exit status']) {
      expect(stdout).toContain(word)
    }
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(110)
  })

  it('--version names itself', () => {
    expect(run(['--version'])).toEqual({
      status: 0,
      stdout: `mnem-sidecar ${manifest.version}\n`,
      stderr: '',
    })
  })

  it('exits with 2 and one sentence for a wrong flag, and prints nothing else', () => {
    const { status, stdout, stderr } = run(['stdio', '--stroe', 'x'])
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expectOneSentence(stderr)
    expect(stderr).toContain('--stroe')
  })

  it('exits with 2 and one sentence for a wrong MNEM_LOG', () => {
    const { status, stderr } = run(['stdio', '--store', tempDir()], { env: { MNEM_LOG: 'loud' } })
    expect(status).toBe(2)
    expectOneSentence(stderr)
    expect(stderr).toContain('MNEM_LOG')
  })

  it('exits with 3 and one sentence when a file is in the way of the store, which stays as it is', () => {
    const file = join(tempDir(), 'store')
    writeFileSync(file, 'mine')
    for (const dir of [file, join(file, 'below')]) {
      const { status, stdout, stderr } = run(['stdio', '--store', dir])
      expect({ status, stdout }).toEqual({ status: 3, stdout: '' })
      expectOneSentence(stderr)
      expect(stderr).toContain(dir)
    }
    expect(readFileSync(file, 'utf8')).toBe('mine')
  })

  it.skipIf(process.getuid?.() !== 0)(
    'exits with 3 and one sentence for a directory that it may not write to',
    () => {
      const dir = join(tempDir(), 'store')
      mkdirSync(dir, { mode: 0o755 })
      chmodSync(join(dir, '..'), 0o755)
      const { status, stderr } = run(['stdio', '--store', dir], { uid: 65_534 })
      expect(status).toBe(3)
      expectOneSentence(stderr)
      expect(stderr).toContain(dir)
    },
  )

  it('runs through a symbolic link', () => {
    const link = join(tempDir(), 'mnem-sidecar')
    symlinkSync(ENTRY, link)
    expect(run(['--version'], { entry: link }).status).toBe(0)
    expect(execFileSync(link, ['--version'], { env: withThisNode(), encoding: 'utf8' })).toContain(
      manifest.version,
    )
  })

  it('runs as the command that npm links', () => {
    const bin = join(ENTRY, '../../../node_modules/.bin/mnem-sidecar')
    if (!existsSync(bin)) symlinkSync(ENTRY, bin)
    expect(execFileSync(bin, ['--version'], { env: withThisNode(), encoding: 'utf8' })).toContain(
      manifest.version,
    )
  })
})

function withThisNode(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env.PATH}` }
}

/** A Node on this machine that is too old, if there is one. */
function oldNode(): string | undefined {
  const { stdout = '' } = spawnSync('which', ['-a', 'node'], { encoding: 'utf8' })
  return stdout.split('\n').find((path) => {
    if (path === '') return false
    const version = spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout
    return Number(/^v(\d+)/.exec(version)?.[1] ?? 24) < 24
  })
}

describe('a Node that is not up to it', () => {
  const old = oldNode()

  it.skipIf(old === undefined)('too old: exits with 4 and one sentence that names it and the fix', () => {
    const { status, stdout, stderr } = run(['--version'], { node: old as string })
    expect({ status, stdout }).toEqual({ status: 4, stdout: '' })
    expectOneSentence(stderr)
    expect(stderr).toContain('Node 24')
    expect(stderr).toContain(old)
  })

  it.each([
    ['3.51.2', 4],
    ['3.50.6', 4],
    ['3.49.9', 4],
    ['3.44.5', 4],
    ['3.45.9', 4],
    ['3.51.3', 0],
    ['3.50.7', 0],
    ['3.44.6', 0],
    ['3.53.0', 0],
    ['4.0.0', 0],
  ])('with SQLite %s exits with %i', (version, code) => {
    const preload = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,sqlite:'${version}'}})`
    const { status, stderr } = spawnSync(process.execPath, ['--import', preload, ENTRY, '--version'], {
      encoding: 'utf8',
    })
    expect(status).toBe(code)
    if (code !== 0) {
      expectOneSentence(stderr)
      expect(stderr).toContain(version)
    }
  })
})
