#!/usr/bin/env node
// Plain JavaScript that old versions of Node can run too: it looks at the Node it runs on before anything of ours is
// imported, because an old one would fail on the first .ts file with a message that helps nobody.

const NODE_NEEDED = 24
const EXIT_WRONG_NODE = 4

/** SQLite before 3.51.3 (but for the backports 3.50.7 and 3.44.6) can lose commits that it acknowledged. */
function isSafeSqlite(version) {
  const [major, minor, patch] = version.split('.').map(Number)
  if (major !== 3) return major > 3
  if (minor === 50) return patch >= 7
  if (minor === 44) return patch >= 6
  return minor > 51 || (minor === 51 && patch >= 3)
}

/** What is wrong with this Node, or undefined. */
function complaint() {
  const found = `${process.execPath} is ${process.version}`
  if (!(Number(process.versions.node.split('.')[0]) >= NODE_NEEDED)) {
    return `needs Node ${NODE_NEEDED} or newer, and ${found}. Install one (https://nodejs.org, or "npm install node@${NODE_NEEDED}") and run it with that.`
  }
  const sqlite = process.versions.sqlite || '0.0.0'
  if (!isSafeSqlite(sqlite)) {
    return `needs SQLite 3.51.3 or newer, because older ones can lose commits, and ${found} with SQLite ${sqlite}. Install the newest Node ${NODE_NEEDED} and run it with that.`
  }
  return undefined
}

/** The warnings that Node prints for `node:sqlite` and for running .ts files tell a user nothing. */
function quietenWarnings() {
  const emit = process.emitWarning
  process.emitWarning = (warning, type, ...rest) => {
    const name = typeof type === 'object' && type !== null ? type.type : type
    if (name === 'ExperimentalWarning' && /SQLite|Type Stripping/i.test(String(warning))) return
    emit.call(process, warning, type, ...rest)
  }
}

// Standard output is for frames (src/stdio.ts takes it); what is printed while the rest is being loaded must not get there.
globalThis.console = new console.Console(process.stderr)

const problem = complaint()
if (problem === undefined) {
  quietenWarnings()
  import('../src/main.ts').then(({ main }) => main(process.argv.slice(2)))
} else {
  process.stderr.write(`mnem-sidecar ${problem}\n`)
  process.exitCode = EXIT_WRONG_NODE
}
