import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Container, ContainerEngine, ExecResult, ImageConfig, RunOptions } from './engine.ts'
import { Logged, output, ROOT, SECRETS } from './process.ts'

const IMAGE = 'mnem-sidecar-test'
const BASE = 'node:24-bookworm-slim'

/** docker, or podman, which takes the same commands. Its base image comes from where it gets images. */
export class DockerEngine implements ContainerEngine {
  readonly name: string
  private readonly dir = mkdtempSync(join(tmpdir(), 'mnem-container-'))
  private readonly running = new Set<DockerContainer>()

  constructor(program: string) {
    this.name = program
  }

  async build(): Promise<{ ms: number; bytesAboveBase: number }> {
    const secrets = Object.entries(SECRETS)
      .filter(([, file]) => file !== undefined && existsSync(file))
      .flatMap(([id, file]) => ['--secret', `id=${id},src=${file}`])
    const started = performance.now()
    const format = this.name === 'podman' ? ['--format', 'docker'] : []
    output(this.name, ['build', '-q', ...format, ...secrets, '-t', IMAGE, ROOT])
    const ms = performance.now() - started
    const size = (image: string) =>
      Number(output(this.name, ['image', 'inspect', '--format', '{{.Size}}', image]).trim())
    return { ms, bytesAboveBase: size(IMAGE) - size(BASE) }
  }

  config(): ImageConfig {
    const [{ Config, Healthcheck }] = JSON.parse(output(this.name, ['image', 'inspect', IMAGE]))
    // podman tells of it beside the rest.
    return { Healthcheck, ...Config }
  }

  files(): string {
    return this.exported(IMAGE)
  }

  baseFiles(): string {
    return this.exported(BASE)
  }

  private exported(image: string): string {
    // It never runs; a base image need not have a command of its own.
    const id = output(this.name, ['create', image, 'true']).trim()
    const folder = mkdtempSync(join(this.dir, 'files-'))
    output('sh', ['-c', `${this.name} export ${id} | tar -x -C "$1"`, 'export', folder])
    output(this.name, ['rm', '--volumes', id])
    return folder
  }

  tcp(port: number): { listen: string; endpoint: string } {
    return { listen: `tcp:0.0.0.0:${port}`, endpoint: `tcp://127.0.0.1:${port}` }
  }

  run(options: RunOptions): Container {
    const container = new DockerContainer(this.name, options)
    this.running.add(container)
    return container
  }

  async close(): Promise<void> {
    for (const container of this.running) await container.remove()
    output(this.name, ['rmi', '--force', IMAGE])
    rmSync(this.dir, { recursive: true, force: true })
  }
}

let count = 0

class DockerContainer implements Container {
  private readonly program: string
  private readonly id = `mnem-test-${process.pid}-${++count}`
  private readonly process: Logged

  constructor(program: string, { mounts, env = {}, args = [], port }: RunOptions) {
    this.program = program
    const volumes = Object.entries(mounts).flatMap(([inside, outside]) => [
      '--volume',
      `${outside}:${inside}`,
    ])
    const variables = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`])
    const ports = port === undefined ? [] : ['--publish', `127.0.0.1:${port}:${port}`]
    const confined = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges']
    this.process = new Logged(program, [
      'run',
      '--rm',
      '--name',
      this.id,
      ...confined,
      ...volumes,
      ...variables,
      ...ports,
      IMAGE,
      ...args,
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
    return spawnSync(this.program, ['exec', this.id, ...command], { encoding: 'utf8', timeout: 60_000 })
  }

  signal(signal: NodeJS.Signals): void {
    output(this.program, ['kill', '--signal', signal, this.id])
  }

  zombies(): string[] {
    return output(this.program, ['top', this.id])
      .split('\n')
      .filter((line) => line.includes('<defunct>'))
  }

  async remove(): Promise<void> {
    spawnSync(this.program, ['rm', '--force', this.id], { stdio: 'ignore' })
    await this.ended
  }
}
