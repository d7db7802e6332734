import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { collect, look, NODE_24, ROOT, seconds, step, toolEnvironment, VENV, VENV_PYTHON } from './run.mjs'
import { SetupError, say } from './say.mjs'

/**
 * Everything that a fresh clone needs, so that `npm run demo` and `npm test` are all a person has to type: node modules,
 * Node 24, a virtual environment, and the outside implementation for the tests that compare with it. What is in place
 * is left alone; a stamp, written last, says what that is, so that an interrupted run is taken up again.
 */

const NODE_STAMP = join(ROOT, 'node_modules', '.mnem-stamp')
const VENV_STAMP = join(VENV, 'mnem-stamp')
const ORACLE_RECORD = join(VENV, 'oracle.json')
const ORACLE_LOG = join(VENV, 'oracle.log')
const ORACLE = 'mnem-agents==0.0.7'
const CONSTRAINTS = join('scripts', 'constraints.txt')

/**
 * What a person's own npm settings must not change here: without development dependencies there is no Node 24, without
 * optional ones no linter, the Node that runs npm need not be the one that our packages ask for, and in a linked layout
 * the install script of the npm package "node" calls itself without end.
 */
const NPM_SETTINGS = [
  '--include=dev',
  '--include=optional',
  '--engine-strict=false',
  '--install-strategy=hoisted',
]

const OLDEST_NODE = 20
const PYTHONS = ['python3', 'python', 'python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10']

/** What pip is told whatever a person's own settings say: packages go into the virtual environment. */
const PIP = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-user']

/**
 * Set everything up; gives whether the outside implementation is there, and if not why.
 * Throws `SetupError` with a sentence that says what to do.
 */
export async function setup() {
  if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
    throw new SetupError(
      `This needs Node ${OLDEST_NODE} or newer, and ${process.execPath} is ${process.version}. Install one from https://nodejs.org.`,
    )
  }
  await setUpNode()
  await setUpPython()
  return { oracle: await setUpOracle() }
}

async function setUpNode() {
  const stamp = fingerprint(['package-lock.json', 'package.json'], process.arch, process.platform)
  if (isCurrent(NODE_STAMP, stamp) && nodeProblem() === undefined) return
  const npm = npmCommand()
  // Its warnings would be about the Node that runs npm; what matters is the one that it brings.
  await step(
    'Installing the node modules',
    npm.program,
    [...npm.args, 'ci', ...NPM_SETTINGS, '--no-audit', '--no-fund', '--loglevel=error'],
    {
      mend: 'Look at the message above; the npm registry has to be within reach.',
    },
  )
  if (nodeProblem() !== undefined) await bringNode(npm)
  const problem = nodeProblem()
  if (problem !== undefined) {
    throw new SetupError(
      `${problem} The npm package "node" gets it by an install script: allow scripts (npm config delete ignore-scripts; npm install-scripts approve node) and run this again.`,
    )
  }
  writeFileSync(NODE_STAMP, stamp)
}

/** The package's install script did not run (npm was told to ignore scripts): run it for this one package. */
async function bringNode(npm) {
  rmSync(join(ROOT, 'node_modules', 'node', 'bin'), { recursive: true, force: true })
  await step(
    'Fetching Node 24',
    npm.program,
    [...npm.args, 'rebuild', 'node', ...NPM_SETTINGS, '--ignore-scripts=false', '--loglevel=error'],
    {
      mend: 'Allow install scripts for the npm package "node" and run this again.',
    },
  )
}

/** What is wrong with the Node that the npm package brought, or undefined. */
function nodeProblem() {
  const { status, stdout } = look(NODE_24, ['-p', 'process.versions.node + " " + process.versions.sqlite'])
  if (status !== 0) return 'Node 24 is not there.'
  const [node = '0', sqlite = '0'] = stdout.trim().split(' ')
  if (Number(node.split('.')[0]) < 24) return `Node 24 is needed, and node_modules/node is ${node}.`
  const [major, minor, patch] = sqlite.split('.').map(Number)
  if (major > 3 || minor > 51 || (minor === 51 && patch >= 3)) return undefined
  return `SQLite 3.51.3 is needed, and node_modules/node ${node} has ${sqlite}.`
}

/** npm as this process was started by it; its own program where it was not. */
function npmCommand() {
  const script = process.env.npm_execpath
  if (script?.endsWith('.js')) return { program: process.execPath, args: [script] }
  return { program: process.platform === 'win32' ? 'npm.cmd' : 'npm', args: [] }
}

async function setUpPython() {
  const stamp = fingerprint([join('client-py', 'pyproject.toml'), CONSTRAINTS], ROOT)
  if (isCurrent(VENV_STAMP, stamp) && isVenvSound()) return
  const python = findPython()
  rmSync(VENV, { recursive: true, force: true })
  await makeVenv(python)
  await step(
    'Installing the Python packages',
    VENV_PYTHON,
    [...PIP, '--quiet', '-c', CONSTRAINTS, '-e', 'client-py[node,test]'],
    {
      mend: 'Look at the message above; PyPI has to be within reach.',
    },
  )
  writeFileSync(VENV_STAMP, stamp)
}

/** Whether .venv runs and is of the Python that was asked for, if one was. */
function isVenvSound() {
  if (look(VENV_PYTHON, ['-c', 'import mnem_autogen']).status !== 0) return false
  return !process.env.PYTHON || pythonVersion(VENV_PYTHON) === pythonVersion(process.env.PYTHON)
}

/** Debian keeps what `venv` needs in a package of its own; virtualenv or uv do as well where they are there. */
async function makeVenv({ program, version }) {
  const ways = [
    [program, ['-m', 'venv', VENV]],
    ['virtualenv', ['--quiet', '-p', program, VENV]],
    ['uv', ['venv', '--quiet', '--seed', '--python', program, VENV]],
  ]
  const said = []
  process.stdout.write(`Making .venv with Python ${version} … `)
  for (const [maker, args] of ways) {
    const { status, output } = await collect(maker, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
    if (status === 0) return say('done')
    // A program that is not there has nothing to say.
    if (status !== null) said.push(output.trim())
    rmSync(VENV, { recursive: true, force: true })
  }
  say('failed')
  throw new SetupError(
    `${said.join('\n')}\n\n${program} can't make a virtual environment. On Debian or Ubuntu: apt install python3-venv. Elsewhere install Python 3.10 or newer from https://python.org.`,
  )
}

/** A Python that is new enough: the one in the variable PYTHON, else the first on the path. */
function findPython() {
  const seen = []
  for (const program of process.env.PYTHON ? [process.env.PYTHON] : PYTHONS) {
    const version = pythonVersion(program)
    if (version === undefined) continue
    const [major, minor] = version.split('.').map(Number)
    if (major === 3 && minor >= 10) return { program, version }
    seen.push(`${program} is ${version}`)
  }
  const none = process.env.PYTHON
    ? `${process.env.PYTHON} (from the variable PYTHON) does not run`
    : 'none was found'
  const found = seen.length === 0 ? none : seen.join(', ')
  throw new SetupError(
    `Python 3.10 or newer is needed, and ${found}. Install one from https://python.org, or name it in the variable PYTHON.`,
  )
}

function pythonVersion(program) {
  const { status, stdout } = look(program, ['-c', 'import sys; print("%d.%d.%d" % sys.version_info[:3])'])
  return status === 0 ? stdout.trim() : undefined
}

/**
 * The outside implementation is an oracle for tests only, and pip may have to compile it with Rust: where that fails all
 * else still works, and the tests that compare with it say that they were skipped.
 */
async function setUpOracle() {
  if (look(VENV_PYTHON, ['-c', 'import mnem']).status === 0) return record({ available: true })
  const isRequired = process.env.MNEM_REQUIRE_ORACLE === '1'
  const hasCargo = look('cargo', ['--version']).status === 0
  const earlier = existsSync(ORACLE_RECORD) && JSON.parse(readFileSync(ORACLE_RECORD, 'utf8'))
  // A try that failed is not made again at every run, but is when Rust has come since.
  if (earlier?.available === false && (earlier.hasCargo || !hasCargo) && !isRequired) return earlier
  const started = Date.now()
  process.stdout.write(`Trying ${ORACLE}, which the tests compare with (it may have to be compiled) … `)
  const { status, output } = await collect(VENV_PYTHON, [...PIP, '--no-deps', ORACLE], {
    cwd: ROOT,
    env: toolEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status === 0) {
    say(seconds(started))
    return record({ available: true })
  }
  writeFileSync(ORACLE_LOG, output)
  const cause = hasCargo ? '' : ' (it needs Rust: https://rustup.rs)'
  const reason = `${ORACLE} could not be installed here${cause}; see .venv/oracle.log`
  say('not to be had; the tests that need it will be skipped')
  const missing = record({ available: false, reason, hasCargo })
  if (isRequired)
    throw new SetupError(`${output.trim()}\n\n${reason}, and MNEM_REQUIRE_ORACLE=1 asks for it.`)
  return missing
}

function record(result) {
  writeFileSync(ORACLE_RECORD, `${JSON.stringify(result)}\n`)
  return result
}

function isCurrent(file, stamp) {
  return existsSync(file) && readFileSync(file, 'utf8') === stamp
}

/** A hash of files and facts: equal when nothing changed that would need another installation. */
function fingerprint(files, ...facts) {
  const hash = createHash('sha256').update(facts.join('\n'))
  for (const file of files)
    if (existsSync(join(ROOT, file))) hash.update(file).update(readFileSync(join(ROOT, file)))
  return hash.digest('hex')
}
