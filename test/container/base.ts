import { chmodSync, copyFileSync, mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { output, ROOT } from './process.ts'

const RELEASE = 'bookworm'
/** Beside the smallest system: what an image of a Node release brings along too, and tini. */
const PACKAGES = 'ca-certificates,tini'

/** Put together what an official Node image is made of, in a folder: Debian, Node 24 and npm. */
export function makeBase(folder: string): void {
  output('debootstrap', ['--variant=minbase', `--include=${PACKAGES}`, RELEASE, folder, mirror()])
  const bin = join(folder, 'usr', 'local', 'bin')
  const node = join(bin, 'node')
  copyFileSync(realpathSync(join(ROOT, 'node_modules', 'node', 'bin', 'node')), node)
  chmodSync(node, 0o755)
  const npm = join(folder, 'usr', 'local', 'lib', 'node_modules', 'npm')
  mkdirSync(npm, { recursive: true })
  const [program, ...args] = npmCommand()
  const version = output(program, [...args, '--version'], { cwd: folder }).trim()
  const packed = output(program, [...args, 'pack', '--silent', `npm@${version}`], {
    cwd: join(folder, 'tmp'),
  }).trim()
  output('tar', ['-xzf', join(folder, 'tmp', packed), '-C', npm, '--strip-components=1'])
  output('rm', [join(folder, 'tmp', packed)])
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(bin, name))
}

/** Where this machine's apt gets Debian from. */
function mirror(): string {
  const format = '$(SITE) $(RELEASE) $(COMPONENT)'
  const targets = output('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'])
  const found = targets.split('\n').find((line) => line.endsWith(` ${RELEASE} main`))
  if (found === undefined) throw new Error(`apt knows no mirror with ${RELEASE}:\n${targets}`)
  return found.split(' ', 1)[0] as string
}

/** npm as it runs these tests, or the one on the path. */
function npmCommand(): [string, ...string[]] {
  const script = process.env.npm_execpath
  return script?.endsWith('.js') ? [process.execPath, script] : ['npm']
}
