import { spawnSync } from 'node:child_process'
import { BuildahEngine } from './buildah.ts'
import { DockerEngine } from './docker.ts'

/** The configuration of an image, as far as the tests look at it. */
export interface ImageConfig {
  User: string
  Env: string[]
  Entrypoint: string[]
  Cmd: string[]
  Volumes: Record<string, unknown>
  StopSignal: string
  Labels: Record<string, string>
  WorkingDir: string
  Healthcheck: { Test: string[] }
}

export interface RunOptions {
  /** Folders of this machine, by where they stand in the container. */
  mounts: Record<string, string>
  env?: Record<string, string>
  /** In place of the image's own command. */
  args?: string[]
  /** A port of the container that this machine's programs want to reach. */
  port?: number
}

export interface ExecResult {
  status: number | null
  stdout: string
  stderr: string
}

/** A container that runs: read-only root, no capability, its non-root user. */
export interface Container {
  /** Resolves once its log has a line with this message. */
  line(msg: string): Promise<void>
  /** What it has written to its log. */
  readonly log: string
  /** Run a command beside its process 1, as its user. */
  exec(...command: string[]): ExecResult
  /** Signal its process 1. */
  signal(signal: NodeJS.Signals): void
  /** The status that it ends with. */
  readonly ended: Promise<number | null>
  /** Names of its processes that have ended and that nobody has collected. */
  zombies(): string[]
  /** End it, however it is. */
  remove(): Promise<void>
}

/** A program that builds images and runs containers. */
export interface ContainerEngine {
  readonly name: string
  /** Build the Dockerfile at the root; gives how long it took in ms, and bytes of the image above its base. */
  build(): Promise<{ ms: number; bytesAboveBase: number }>
  config(): ImageConfig
  /** A folder with all files of the image. */
  files(): string
  /** A folder with all files of the image that it is based on. */
  baseFiles(): string
  run(options: RunOptions): Container
  /** The address to listen at for `RunOptions.port`, from inside, and the one to connect to, from here. */
  tcp(port: number): { listen: string; endpoint: string }
  /** Remove everything that was made. */
  close(): Promise<void>
}

/** The engine that works here, or why there is none. */
export function findEngine(): ContainerEngine | string {
  for (const program of ['docker', 'podman']) {
    // A client without its engine answers to --version and to nothing else.
    if (works(program, ['info'])) return new DockerEngine(program)
  }
  const isLinuxRoot = process.platform === 'linux' && process.getuid?.() === 0
  if (isLinuxRoot && works('buildah', ['--version']) && works('debootstrap', ['--version']))
    return new BuildahEngine()
  return 'there is neither docker nor podman, nor (as root) buildah with debootstrap'
}

function works(program: string, args: string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore', timeout: 20_000 }).status === 0
}
