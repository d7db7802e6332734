import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

/**
 * `npm run build`: bundle the sidecar into one file, `dist/mnem-sidecar.mjs`, with the licences of what it brings along
 * beside it. It needs nothing but Node 24, and an older one still gets the sentence that says so: what the bundle
 * imports is not looked for before the entry file has looked at the version.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DIST = join(ROOT, 'dist')
const ENTRY = join(ROOT, 'server', 'bin', 'mnem-sidecar.mjs')
const MAIN = join(ROOT, 'server', 'src', 'main.ts')

/** How the entry file loads the rest, and what stands there in the bundle. */
const LOADS = "import('../src/main.ts').then(({ main }) => main(process.argv.slice(2)))"
const CALLS = 'loadMain(createRequire(import.meta.url)).main(process.argv.slice(2))'

const bundle = await rolldown({
  input: MAIN,
  platform: 'node',
  // What pino would start as a worker of its own is never asked for.
  external: [/^node:/],
  onLog(level, log) {
    if (level === 'warn') throw new Error(log.message)
  },
})
const { output } = await bundle.generate({
  format: 'cjs',
  codeSplitting: false,
  minify: false,
  comments: false,
})
const [chunk] = output
if (output.length !== 1) throw new Error(`the bundle has ${output.length} parts`)

const entry = readFileSync(ENTRY, 'utf8')
if (!entry.includes(LOADS)) throw new Error(`${ENTRY} does not load the rest as expected`)
const text = [
  entry.replace('\n\n', "\n\nimport { createRequire } from 'node:module'\n\n").replace(LOADS, CALLS),
  '/** The bundle: run only once the version is known to be good. */',
  'function loadMain(require) {',
  'const exports = {}',
  chunk.code,
  'return exports',
  '}',
  '',
].join('\n')
mkdirSync(DIST, { recursive: true })
writeFileSync(join(DIST, 'mnem-sidecar.mjs'), text)
const packages = bundledPackages(chunk.moduleIds)
writeFileSync(join(DIST, 'THIRD-PARTY-LICENSES.txt'), packages.map(licenceOf).join('\n'))
process.stdout.write(
  `dist/mnem-sidecar.mjs: ${Math.round(text.length / 1024)} KiB with ${packages.length} packages\n`,
)

/** The folders of the packages from which modules were taken. */
function bundledPackages(modules) {
  const folders = new Set()
  for (const id of modules) {
    const path = relative(ROOT, id.replace(/^\0|\?.*$/g, ''))
    const parts = path.split(sep)
    const at = parts.lastIndexOf('node_modules')
    if (at === -1) continue
    const length = parts[at + 1].startsWith('@') ? 3 : 2
    folders.add(join(ROOT, ...parts.slice(0, at + length)))
  }
  return Array.from(folders).sort()
}

function licenceOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((one) => /^licen[cs]e(\.|$)/i.test(one))
  if (file === undefined && license === undefined) throw new Error(`${name} says nothing of its licence`)
  const words = file === undefined ? '' : `${readFileSync(join(folder, file), 'utf8').trim()}\n`
  return `${name} ${version} (${license ?? file})\n${'-'.repeat(72)}\n${words}`
}
