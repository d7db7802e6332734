import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readCommandLine, serveHelp } from '../src/command-line.ts'
import { OPTION_NAMES, OPTIONS } from '../src/config/options.ts'
import { readConfiguration } from '../src/config/read.ts'
import { maskSecrets, showConfiguration } from '../src/config/show.ts'
import { bytes, duration, type Kind } from '../src/config/values.ts'
import { isLocal, readAddress, showAddress } from '../src/listen/address.ts'
import { UsageError } from '../src/usage.ts'
import { tempDir } from './daemon.ts'
import { run } from './serving.ts'

function read(argv: string[], env: Record<string, string> = {}) {
  const command = readCommandLine(['serve', ...argv], env)
  if (command.name !== 'serve') throw new Error(command.name)
  return readConfiguration(command.flags, env)
}

function file(name: string, text: string): string {
  const path = join(tempDir(), name)
  writeFileSync(path, text)
  return path
}

describe('an option', () => {
  it('comes from the command line before the environment before the file before the default', () => {
    const config = file('c.toml', 'drain = "3s"\nlog_level = "warn"\nmax_connections = 7\n')
    const env = { MNEM_SERVER_CONFIG: config, MNEM_SERVER_DRAIN: '2s', MNEM_SERVER_LOG_LEVEL: 'error' }
    const { config: found, sources } = read(['--drain', '1s'], env)
    expect(found).toMatchObject({
      drain: 1000,
      log_level: 'error',
      max_connections: 7,
      idle_timeout: 3_600_000,
    })
    expect(sources).toMatchObject({
      drain: '--drain',
      log_level: 'MNEM_SERVER_LOG_LEVEL',
      max_connections: `${config}: max_connections`,
      idle_timeout: 'default',
    })
  })

  it('that is set to nothing in the environment is not set there', () => {
    expect(read([], { MNEM_SERVER_DRAIN: '' }).config.drain).toBe(10_000)
  })

  it('may be a list: several flags, commas in the environment, a list in the file', () => {
    const both = ['unix:/a', 'tcp:127.0.0.1:1']
    expect(read(['--listen', 'unix:/a', '--listen', 'tcp:127.0.0.1:1']).config.listen).toEqual(both)
    expect(read([], { MNEM_SERVER_LISTEN: 'unix:///a, tcp://127.0.0.1:1' }).config.listen).toEqual(both)
    const json = file('c.json', JSON.stringify({ listen: both }))
    expect(read(['--config', json]).config.listen).toEqual(both)
  })

  it.each(OPTION_NAMES)('%s is in the help, and reads back what it shows', (name) => {
    const { kind, byDefault } = OPTIONS[name]
    expect(serveHelp()).toContain(`--${name.replaceAll('_', '-')} `)
    if (byDefault === undefined) return
    const { read: readValue, show } = kind as Kind<unknown>
    expect(readValue(show(byDefault))).toEqual(byDefault)
  })

  it.each<[string[], Record<string, string>, RegExp]>([
    [['--drain', 'soon'], {}, /^--drain is "soon", which is no time; give one such as 500ms, 10s/],
    [['--drain', '25d'], {}, /at most 24d/],
    [['--drain', '1ms'], {}, /out of range; give 1s to 1h/],
    [[], { MNEM_SERVER_MAX_CONNECTIONS: '0' }, /^MNEM_SERVER_MAX_CONNECTIONS is "0", which is no count/],
    [['--frame-bytes', '1MB'], {}, /no size; give one such as 64KiB/],
    [['--frame-bytes', '1KiB'], {}, /out of range; give 1MiB to 256MiB/],
    [['--socket-mode', '999'], {}, /no file mode/],
    [['--log-level', 'loud'], {}, /no level; give one of trace/],
    [['--listen', '7777'], {}, /no address; give unix:PATH/],
    [['--listen', 'tcp:7777'], {}, /no HOST:PORT/],
    [['--listen', 'tcp::7777'], {}, /no host; give 127\.0\.0\.1/],
    [['--listen', 'tcp:a:70000'], {}, /port over 65535/],
    [['--listen', 'unix:'], {}, /no path/],
    [['--http', '9090'], {}, /no HOST:PORT/],
    [['--config', '/nowhere.toml'], {}, /\/nowhere\.toml can't be read \(ENOENT\)/],
  ])('%j %j is refused by its source, saying what to give', (argv, env, message) => {
    expect(() => read(argv, env)).toThrow(UsageError)
    expect(() => read(argv, env)).toThrow(message)
  })

  it.each<[string, string, RegExp]>([
    ['c.toml', 'drian = "1s"', /sets "drian", which is no option/],
    ['c.toml', 'socket-mode = "0600"', /"socket-mode", which is no option \(with underscores\)/],
    ['c.toml', 'socket_mode = 0o660', /socket_mode is 432, which is no file mode/],
    ['c.toml', 'drain = ["1s"]', /drain is \["1s"\], which is no time/],
    ['c.toml', '[store]\npath = "a"', /store must be a text, a number, or a list/],
    ['c.toml', 'store = "secret', /is no TOML at line 1/],
    ['c.json', '{"store": ', /is no JSON/],
    ['c.json', '[]', /one object/],
  ])('a file %s with %j is refused', (name, text, message) => {
    const config = file(name, text)
    expect(() => read(['--config', config])).toThrow(UsageError)
    expect(() => read(['--config', config])).toThrow(message)
    expect(() => read(['--config', config])).not.toThrow(/secret/)
  })

  it('that looks like ours in the environment and is none is told', () => {
    const found = read([], { MNEM_SERVER_DRIAN: '1', MNEM_STORE: 'x' })
    expect(found.strangers).toEqual(['MNEM_SERVER_DRIAN'])
    expect(showConfiguration(found)).toContain('# MNEM_SERVER_DRIAN is no option of serve\n')
  })
})

describe('--print-config', () => {
  it('is a file that says the same, each line with where it is from', () => {
    const { stdout, status } = run(
      'serve',
      '--store',
      'dir',
      '--listen',
      'tcp:[::1]:0',
      '--http',
      '[::1]:1',
      '--print-config',
    )
    expect(status).toBe(0)
    expect(stdout).toContain('store = "dir" # --store\n')
    expect(stdout).toContain('drain = "10s" # default\n')
    expect(stdout).toContain('# token_file is not set\n')
    const config = file('printed.toml', stdout)
    const again = read(['--config', config])
    expect(again.config).toEqual(
      read(['--store', 'dir', '--listen', 'tcp:[::1]:0', '--http', '[::1]:1']).config,
    )
  })

  it('shows no password', () => {
    const shown = showConfiguration(read(['--store', 'postgres://me:hush@db/x']))
    expect(shown).toContain('postgres://me:****@db/x')
    expect(shown).not.toContain('hush')
    expect(maskSecrets('/plain/path:a@b')).toBe('/plain/path:a@b')
  })
})

describe('values', () => {
  it.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['1.5m', 90_000],
    ['2h', 7_200_000],
    [3, 3000],
    ['0', 0],
  ])('time %j is %d ms', (text, ms) => {
    expect(duration.read(text)).toBe(ms)
    expect(duration.read(duration.show(ms) as string)).toBe(ms)
  })

  it.each([
    ['64KiB', 65_536],
    ['1GiB', 2 ** 30],
    [1000, 1000],
    ['17', 17],
  ])('size %j is %d bytes', (text, size) => {
    expect(bytes.read(text)).toBe(size)
    expect(bytes.read(bytes.show(size) as string)).toBe(size)
  })

  it.each([
    ['unix:/run/m.sock', true],
    ['unix:relative.sock', true],
    ['tcp:127.0.0.1:1', true],
    ['tcp:127.9.9.9:1', true],
    ['tcp:localhost:1', true],
    ['tls:[::1]:1', true],
    ['tcp:0.0.0.0:1', false],
    ['tcp:[::]:1', false],
    ['tls:127.example:1', false],
    ['tcp:10.0.0.1:1', false],
  ])('address %s: only this machine reaches it: %s', (text, local) => {
    expect(isLocal(readAddress(text))).toBe(local)
    expect(showAddress(readAddress(text))).toBe(text)
  })
})
