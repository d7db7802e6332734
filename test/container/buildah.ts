import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeBase } from './base.ts'
import type { Container, ContainerEngine, ExecResult, ImageConfig, RunOptions } from './engine.ts'
import { Logged, output, ROOT, SECRETS } from './process.ts'

const IMAGE = 'localhost/mnem-sidecar'
const BASE = 'localhost/base'

/**
 * buildah, on machines that have no engine: it builds, and what it built is run by Linux' own means, in namespaces of its
 * own (mounts and processes), with a root that is mounted read-only.
 */
export class BuildahEngine implements ContainerEngine {
  readonly name = 'buildah'
  private readonly dir = mkdtempSync(join(tmpdir(), 'mnem-container-'))
  private readonly running = new Set<BuildahContainer>()
  private root = ''

  async build(): Promise<{ ms: number; bytesAboveBase: number }> {
    const base = join(this.dir, 'base')
    makeBase(base)
    const scratch = this.buildah('from', 'scratch').trim()
    this.buildah('add', '-q', scratch, base, '/')
    this.buildah('commit', '-q', '--format', 'docker', scratch, BASE)
    this.buildah('rm', scratch)
    rmSync(base, { recursive: true })
    const secrets = Object.entries(SECRETS)
      .filter(([, file]) => file !== undefined && existsSync(file))
      .flatMap(([id, file]) => ['--secret', `id=${id},src=${file}`])
    const started = performance.now()
    const build = ['bud', '-q', '--format', 'docker', '--build-arg', `NODE_IMAGE=${BASE}`, ...secrets]
    this.buildah(...build, '-t', IMAGE, ROOT)
    const ms = performance.now() - started
    this.root = this.buildah('mount', this.buildah('from', IMAGE).trim()).trim()
    return { ms, bytesAboveBase: this.size(IMAGE) - this.size(BASE) }
  }

  config(): ImageConfig {
    return this.inspect(IMAGE).Docker.config
  }

  files(): string {
    return this.root
  }

  baseFiles(): string {
    return this.buildah('mount', this.buildah('from', BASE).trim()).trim()
  }

  tcp(port: number): { listen: string; endpoint: string } {
    // No network of its own: what is published elsewhere stands on the loopback of this machine.
    return { listen: `tcp:127.0.0.1:${port}`, endpoint: `tcp://127.0.0.1:${port}` }
  }

  run(options: RunOptions): Container {
    const container = new BuildahContainer(this.root, this.config(), options)
    this.running.add(container)
    return container
  }

  async close(): Promise<void> {
    for (const container of this.running) await container.remove()
    this.buildah('umount', '--all')
    this.buildah('rm', '--all')
    this.buildah('rmi', '--all', '--force')
    rmSync(this.dir, { recursive: true, force: true })
  }

  private size(image: string): number {
    const images = JSON.parse(this.buildah('inspect', '--type', 'image', image))
    const manifest = JSON.parse(images.Manifest)
    return manifest.layers.reduce((sum: number, { size }: { size: number }) => sum + size, 0)
  }

  private inspect(image: string) {
    return JSON.parse(this.buildah('inspect', '--type', 'image', image))
  }

  private buildah(...args: string[]): string {
    const place = ['--root', join(this.dir, 'storage'), '--runroot', join(this.dir, 'run')]
    return output('buildah', [...place, ...args], { env: { ...process.env, BUILDAH_ISOLATION: 'chroot' } })
  }
}

/** Mount what it sees, then become its process 1. `$1` is its root; what follows are pairs of folders and the command. */
const ENTER = `set -e
root=$1; shift
mount --bind "$root" "$root"
while [ "$1" != -- ]; do mount --bind "$1" "$root$2"; shift 2; done
shift
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
for device in null zero full random urandom; do
  : > "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount -o remount,ro "$root/dev"
mount -o remount,bind,ro "$root"
exec chroot "$root" "$@"`

class BuildahContainer implements Container {
  private readonly prefix: string[]
  private readonly process: Logged

  constructor(
    root: string,
    { User, Env, Entrypoint, Cmd }: ImageConfig,
    { mounts, env = {}, args = Cmd }: RunOptions,
  ) {
    const [uid, gid] = User.split(':')
    const variables = [...Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)]
    const privileges = [
      `--reuid=${uid}`,
      `--regid=${gid}`,
      '--clear-groups',
      '--bounding-set=-all',
      '--no-new-privs',
    ]
    this.prefix = ['/usr/bin/env', '-i', ...variables, 'setpriv', ...privileges, '--']
    const pairs = Object.entries(mounts).flatMap(([inside, outside]) => [outside, inside])
    const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private']
    const command = [...this.prefix, ...Entrypoint, ...args]
    this.process = new Logged('unshare', [
      ...namespaces,
      'sh',
      '-c',
      ENTER,
      'enter',
      root,
      ...pairs,
      '--',
      ...command,
    ])
  }

  get log(): string {
    return this.process.log
  }

  get ended(): Promise<number | null> {
    return this.process.ended
  }

  line(msg: string): Promise<void> {
    return this.process.until(`"msg":"${msg}"`)
  }

  exec(...command: string[]): ExecResult {
    const namespaces = ['--target', String(this.pid), '--mount', '--pid', '--root', '--wd=/']
    return spawnSync('nsenter', [...namespaces, ...this.prefix, ...command], {
      encoding: 'utf8',
      timeout: 60_000,
    })
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal)
  }

  zombies(): string[] {
    return readdirSync('/proc')
      .filter((entry) => /^\d+$/.test(entry))
      .flatMap((pid) => {
        const status = readStatus(pid)
        return /^State:\s+Z/m.test(status) && Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]) === this.pid
          ? [/^Name:\s+(.*)$/m.exec(status)?.[1] ?? pid]
          : []
      })
  }

  async remove(): Promise<void> {
    // With its process 1 all others go. (To end `unshare` would not do: a process that changed its user is not told of
    // its parent's death.)
    if (this.process.child.exitCode === null && this.process.child.signalCode === null) {
      try {
        this.signal('SIGKILL')
      } catch {
        this.process.child.kill('SIGKILL')
      }
    }
    await this.ended
  }

  /** Its process 1, as this machine counts. */
  private get pid(): number {
    const { pid } = this.process.child
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
    if (!child) throw new Error(`it has ended:\n${this.log}`)
    return Number(child)
  }
}

function readStatus(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return ''
  }
}
