import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { collect, look, NODE_24, ROOT, step, toolEnvironment, VENV, VENV_PYTHON } from './run.mjs'
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

const OLDEST_NODE = 20
const PYTHONS = ['python3', 'python', 'python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10']

/** Set everything up. Throws `SetupError` with a sentence that says what to do. */
export async function setup() {
  if (Number(process.versions.node.split('.')[0]) < OLDEST_NODE) {
    throw new SetupError(
      `This needs Node ${OLDEST_NODE} or newer, and ${process.execPath} is ${process.version}. Install one from https://nodejs.org.`,
    )
  }
  await setUpNode()
  await setUpPython()
  await setUpOracle()
}

async function setUpNode() {
  const stamp = fingerprint(['package-lock.json', 'package.json'], process.arch, process.platform)
  if (isCurrent(NODE_STAMP, stamp) && nodeProblem() === undefined) return
  const npm = npmCommand()
  // Its warnings would be about the Node that runs npm; what matters is the one that it brings.
  await step(
    'Installing the node modules',
    npm.program,
    [...npm.args, 'ci', '--no-audit', '--no-fund', '--loglevel=error'],
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
    [...npm.args, 'rebuild', 'node', '--ignore-scripts=false', '--loglevel=error'],
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
  if (isCurrent(VENV_STAMP, stamp) && look(VENV_PYTHON, ['-c', 'import mnem_autogen']).status === 0) return
  const python = findPython()
  rmSync(VENV, { recursive: true, force: true })
  const mend =
    'On Debian or Ubuntu: apt install python3-venv. Elsewhere install Python 3.10 or newer from https://python.org.'
  await step(`Making .venv with Python ${python.version}`, python.program, ['-m', 'venv', VENV], { mend })
  const install = [
    '-m',
    'pip',
    'install',
    '--disable-pip-version-check',
    '--quiet',
    '-c',
    CONSTRAINTS,
    '-e',
    'client-py[node,test]',
  ]
  await step('Installing the Python packages', VENV_PYTHON, install, {
    mend: 'Look at the message above; PyPI has to be within reach.',
  })
  writeFileSync(VENV_STAMP, stamp)
}

/** A Python that is new enough: the one in the variable PYTHON, else the first on the path. */
function findPython() {
  const seen = []
  for (const program of process.env.PYTHON ? [process.env.PYTHON] : PYTHONS) {
    const { status, stdout } = look(program, ['-c', 'import sys; print("%d.%d.%d" % sys.version_info[:3])'])
    if (status !== 0) continue
    const version = stdout.trim()
    const [major, minor] = version.split('.').map(Number)
    if (major === 3 && minor >= 10) return { program, version }
    seen.push(`${program} is ${version}`)
  }
  const found = seen.length === 0 ? 'none was found' : seen.join(', ')
  throw new SetupError(
    `Python 3.10 or newer is needed, and ${found}. Install one from https://python.org, or name it in the variable PYTHON.`,
  )
}

/**
 * The outside implementation is an oracle for tests only, and pip may have to compile it with Rust: where that fails all
 * else still works, and the tests that compare with it say that they were skipped.
 */
async function setUpOracle() {
  if (look(VENV_PYTHON, ['-c', 'import mnem']).status === 0) return record(true)
  const earlier = existsSync(ORACLE_RECORD) && JSON.parse(readFileSync(ORACLE_RECORD, 'utf8'))
  if (earlier && process.env.MNEM_REQUIRE_ORACLE !== '1') return
  process.stdout.write(`Trying ${ORACLE}, which the tests compare with (it may have to be compiled) … `)
  const args = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-deps', ORACLE]
  const { status, output } = await collect(VENV_PYTHON, args, {
    cwd: ROOT,
    env: toolEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status === 0) {
    say('there')
    return record(true)
  }
  mkdirSync(VENV, { recursive: true })
  writeFileSync(ORACLE_LOG, output)
  const reason = `${ORACLE} could not be installed here (it needs Rust: https://rustup.rs); see .venv/oracle.log`
  say('not to be had; the tests that need it will be skipped')
  record(false, reason)
  if (process.env.MNEM_REQUIRE_ORACLE === '1')
    throw new SetupError(`${output.trim()}\n\n${reason}, and MNEM_REQUIRE_ORACLE=1 asks for it.`)
}

function record(available, reason) {
  writeFileSync(ORACLE_RECORD, `${JSON.stringify({ available, reason })}\n`)
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
