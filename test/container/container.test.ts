import { spawn } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  type Container,
  type ContainerEngine,
  findEngine,
  type ImageConfig,
  type RunOptions,
} from './engine.ts'
import { output, ROOT, SECRETS } from './process.ts'

const PYTHON = join(ROOT, '.venv', 'bin', 'python')
const CLIENT = fileURLToPath(new URL('./client.py', import.meta.url))
const EXAMPLE = join(ROOT, 'examples', 'compose', 'app.py')
const SIDECAR = ['node', '/app/mnem-sidecar.mjs']
const USER = 10_001

const engine = findEngine()
if (typeof engine === 'string' && process.env.MNEM_REQUIRE_CONTAINER === '1') throw new Error(engine)

// Told by its name, which stands in the list of what was skipped.
if (typeof engine === 'string') test.skip(`all of the container’s tests: ${engine}`, () => {})

describe.skipIf(typeof engine === 'string')(
  `the image, by ${typeof engine === 'string' ? '' : engine.name}`,
  () => {
    const host = engine as ContainerEngine
    let config: ImageConfig
    let bytes = 0

    beforeAll(async () => {
      const { ms, bytesAboveBase } = await host.build()
      bytes = bytesAboveBase
      config = host.config()
      process.stdout.write(
        `image: built in ${(ms / 1000).toFixed(1)} s, ${(bytesAboveBase / 1024 / 1024).toFixed(2)} MiB above its base\n`,
      )
    })

    afterAll(() => host.close())

    /** Folders for its data and its socket, its user's own. */
    function folders(): { data: string; sockets: string; mounts: RunOptions['mounts'] } {
      const dir = mkdtempSync(join(tmpdir(), 'mnem-'))
      const [data, sockets] = [join(dir, 'data'), join(dir, 'sockets')]
      for (const folder of [data, sockets]) {
        mkdirSync(folder)
        if (process.getuid?.() === 0) chownSync(folder, USER, USER)
      }
      onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
      return { data, sockets, mounts: { '/data': data, '/run/mnem': sockets } }
    }

    async function start(options: RunOptions): Promise<Container> {
      const container = host.run(options)
      onTestFinished(() => container.remove())
      await container.line('ready')
      return container
    }

    test('runs as nobody in particular, is ended by SIGTERM, and can be probed without a shell', () => {
      expect(config.User).toMatch(/^[1-9]\d{3,}:[1-9]\d{3,}$/)
      expect(config.StopSignal).toBe('SIGTERM')
      expect(config.Healthcheck.Test).toEqual(['CMD', ...SIDECAR, 'health'])
      expect(config.Entrypoint).toEqual(['/usr/bin/tini', '--', ...SIDECAR])
      expect(config.Cmd).toEqual(['serve'])
      expect(Object.keys(config.Volumes).sort()).toEqual(['/data', '/run/mnem'])
      expect(config.Labels).toMatchObject({
        'org.opencontainers.image.title': 'mnem-sidecar',
        'org.opencontainers.image.licenses': 'Apache-2.0',
        'org.opencontainers.image.version': JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
          .version,
      })
    })

    test('adds to its base the bundled server, its licences and two empty folders, and nothing else', () => {
      const base = new Set(paths(host.baseFiles()))
      const added = paths(host.files()).filter((path) => !base.has(path) && path !== 'usr/bin/tini')
      expect(added.sort()).toEqual([
        'app',
        'app/LICENSE',
        'app/THIRD-PARTY-LICENSES.txt',
        'app/mnem-sidecar.mjs',
        'data',
        'run/mnem',
      ])
      expect(bytes).toBeGreaterThan(0)
      expect(bytes).toBeLessThan(8 * 1024 * 1024)
    })

    test('has nothing of the build’s secrets or of the machine that built it', () => {
      const bundle = readFileSync(join(host.files(), 'app', 'mnem-sidecar.mjs'), 'utf8')
      expect(bundle).not.toMatch(/registry\.npmjs|_authToken|\/work\//)
      expect(bundle).not.toContain(ROOT)
      expect(JSON.stringify(config)).not.toMatch(/npmrc|token|\.pem/i)
      for (const line of secretLines()) expect(JSON.stringify(config) + bundle).not.toContain(line)
    })

    test('needs no shell', async () => {
      const { mounts } = folders()
      const none = Object.fromEntries(['sh', 'bash', 'dash'].map((name) => [`/bin/${name}`, '/dev/null']))
      const container = await start({ mounts: { ...mounts, ...none } })
      expect(container.exec('sh', '-c', 'exit 0').status).not.toBe(0)
      expect(container.exec(...SIDECAR, 'health').status).toBe(0)
      container.signal('SIGTERM')
      expect(await container.ended).toBe(0)
    })

    test('serves the Python client over a Unix socket on a shared folder', async () => {
      const { sockets, mounts } = folders()
      const container = await start({ mounts })
      expect(container.exec(...SIDECAR, 'health')).toMatchObject({ status: 0, stdout: 'healthy\n' })
      const endpoint = `unix://${join(sockets, 'mnem.sock')}`
      const added = output(PYTHON, [CLIENT, endpoint, 'add', '125']).trim().split('\n')
      expect(added).toHaveLength(1000)
      expect(output(PYTHON, [CLIENT, endpoint, 'items']).trim().split('\n').sort()).toEqual(added.sort())
    })

    test('serves the application of the Compose example, which remembers what it was told before', async () => {
      const { sockets, mounts } = folders()
      await start({ mounts })
      const env = { ...process.env, MNEM_ENDPOINT: `unix://${join(sockets, 'mnem.sock')}` }
      expect(output(PYTHON, [EXAMPLE], { env })).not.toContain('This is visit 2.')
      expect(output(PYTHON, [EXAMPLE], { env })).toMatch(/1\. This is visit 1\.\n2\. This is visit 2\./)
    })

    test('and over TCP with a token, not without', async () => {
      const { data, mounts } = folders()
      const port = await freePort()
      const { listen, endpoint } = host.tcp(port)
      const tokens = '/data/tokens.json'
      // Made with the image itself, as its user.
      const maker = await start({ mounts })
      const made = maker.exec(
        ...SIDECAR,
        'token',
        'new',
        '--file',
        tokens,
        '--name',
        'a',
        '--memory',
        'load',
        '--verb',
        'read',
        '--verb',
        'write',
      )
      expect(made.status).toBe(0)
      const token = made.stdout.trimEnd().split('\n').at(-1) as string
      await maker.remove()
      expect(readFileSync(join(data, 'tokens.json'), 'utf8')).not.toContain(token)
      const container = await start({
        mounts,
        port,
        env: { MNEM_SERVER_LISTEN: listen, MNEM_SERVER_TOKEN_FILE: tokens },
      })
      const run = (env: Record<string, string>) =>
        output(PYTHON, [CLIENT, endpoint, 'add', '10'], { env: { ...process.env, ...env } })
      expect(run({ MNEM_TOKEN: token }).trim().split('\n')).toHaveLength(80)
      expect(run({ MNEM_TOKEN: 'mnem_wrong' })).toBe('')
      expect(container.exec(...SIDECAR, 'health').status).toBe(1)
      expect(container.exec('env', `MNEM_TOKEN=${token}`, ...SIDECAR, 'health').status).toBe(0)
      expect(container.log).not.toContain(token)
    })

    test('SIGTERM under load loses nothing, and the next one goes on where it was', async () => {
      const { sockets, mounts } = folders()
      const endpoint = `unix://${join(sockets, 'mnem.sock')}`
      const first = await start({ mounts })
      const client = spawn(PYTHON, [CLIENT, endpoint, 'add', '100000'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      onTestFinished(() => {
        client.kill('SIGKILL')
      })
      let acknowledged = ''
      let signalled = false
      for await (const chunk of client.stdout) {
        acknowledged += chunk
        if (signalled || acknowledged.split('\n').length < 300) continue
        signalled = true
        first.signal('SIGTERM')
      }
      expect(await first.ended).toBe(0)
      await start({ mounts })
      const kept = output(PYTHON, [CLIENT, endpoint, 'items']).trim().split('\n')
      expect(new Set(kept).size).toBe(kept.length)
      const missing = acknowledged
        .trim()
        .split('\n')
        .filter((text) => !kept.includes(text))
      expect(missing).toEqual([])
    })

    test('a killed one leaves its socket, and the next one serves on it', async () => {
      const { sockets, mounts } = folders()
      const endpoint = `unix://${join(sockets, 'mnem.sock')}`
      const killed = await start({ mounts })
      output(PYTHON, [CLIENT, endpoint, 'add', '1'])
      killed.signal('SIGKILL')
      await killed.ended
      expect(existsSync(join(sockets, 'mnem.sock'))).toBe(true)
      await start({ mounts })
      expect(output(PYTHON, [CLIENT, endpoint, 'items']).trim().split('\n')).toHaveLength(8)
    })

    test('collects the children of others', async () => {
      const { mounts } = folders()
      const container = await start({ mounts })
      const orphan = `require('node:child_process').spawn('/bin/sleep', ['0.2'], { detached: true, stdio: 'ignore' }).unref()`
      expect(container.exec('node', '-e', orphan).status).toBe(0)
      const isLeft = () => container.exec('node', '-e', SLEEPING).stdout.trim() !== '0'
      await expect.poll(isLeft, { timeout: 20_000 }).toBe(false)
      expect(container.zombies()).toEqual([])
    })

    test.skipIf(process.getuid?.() !== 0)('is unhealthy while the volume can’t be written to', async () => {
      const { data, mounts } = folders()
      const container = await start({ mounts })
      chownSync(data, 0, 0)
      const { status, stderr } = container.exec(...SIDECAR, 'health')
      expect(status).toBe(1)
      expect(stderr).toMatch(/unhealthy: .*belongs to user 0:0 .*runs as 10001:10001/)
      chownSync(data, USER, USER)
      await expect.poll(() => container.exec(...SIDECAR, 'health').status).toBe(0)
    })

    test.skipIf(process.getuid?.() !== 0).each(['', 'mnem.db'])(
      'refuses a volume whose %s the user can’t write, saying whose it is and what to do (G23)',
      async (name) => {
        const { data, mounts } = folders()
        if (name !== '') {
          const maker = await start({ mounts })
          maker.signal('SIGTERM')
          await maker.ended
        }
        chownSync(join(data, name), 0, 0)
        const container = host.run({ mounts })
        onTestFinished(() => container.remove())
        expect(await container.ended).toBe(3)
        // An engine may have words of its own beside ours.
        const own = container.log.split('\n').filter((line) => /mnem-sidecar|^\s+at /.test(line))
        expect(own).toHaveLength(1)
        expect(own[0]).toMatch(
          /mnem-sidecar: .*\/data.* belongs to user 0:\d+ .*this process runs as 10001:10001 .*chown -R 10001:10001 \/data/,
        )
      },
    )
  },
)

/** Prints how many processes called sleep there are, dead or alive. */
const SLEEPING = `
const { readdirSync, readFileSync } = require('node:fs')
const names = readdirSync('/proc').filter((pid) => /^[0-9]+$/.test(pid)).map((pid) => {
  try { return readFileSync('/proc/' + pid + '/comm', 'utf8').trim() } catch { return '' }
})
console.log(names.filter((name) => name === 'sleep').length)
`

/** Every path below a folder. */
function paths(folder: string): string[] {
  return output('find', [folder, '-xdev', '-mindepth', '1', '-printf', '%P\\n']).trimEnd().split('\n')
}

/** What this machine's npm configuration has of tokens and hosts. */
function secretLines(): string[] {
  const { npmrc } = SECRETS
  if (npmrc === undefined || !existsSync(npmrc)) return []
  return readFileSync(npmrc, 'utf8')
    .split('\n')
    .filter((line) => /\/\/|_auth|_password/.test(line))
    .map((line) => line.slice(line.indexOf('=') + 1).trim())
    .filter((value) => value.length > 3)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
