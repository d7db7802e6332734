import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { collect, pass, ROOT, toolEnvironment, VENV_PYTHON } from './run.mjs'
import { fail, SetupError, say } from './say.mjs'
import { setup } from './setup.mjs'

/** `npm test`: set up what is missing, then run every check and every test, and count them. */

const OUT = join(ROOT, 'test', '.out')
const VITEST_REPORT = join(OUT, 'vitest.json')
const CONTAINER_REPORT = join(OUT, 'container.json')
const PYTEST_REPORT = join(OUT, 'pytest.xml')
const PYTHON_PLACES = ['client-py', 'examples', 'test']

/** Checks that pass or fail as a whole. They change nothing and share nothing, so they run side by side. */
const CHECKS = {
  biome: ['biome', 'check', '--error-on-warnings'],
  tsc: ['tsc', '--noEmit', '-p', '.'],
  ruff: [VENV_PYTHON, '-m', 'ruff', 'check', ...PYTHON_PLACES],
  'ruff-format': [VENV_PYTHON, '-m', 'ruff', 'format', '--check', ...PYTHON_PLACES],
  pyright: ['pyright', '-p', 'client-py', '--pythonpath', VENV_PYTHON],
}

/** Runners that say how many tests passed, failed and were skipped. */
const RUNNERS = {
  vitest: {
    command: ['vitest', 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${VITEST_REPORT}`],
    count: () => countVitest(VITEST_REPORT),
  },
  pytest: {
    command: [
      VENV_PYTHON,
      '-m',
      'pytest',
      '-q',
      '-ra',
      '-c',
      'client-py/pyproject.toml',
      'client-py/tests',
      `--junitxml=${PYTEST_REPORT}`,
    ],
    count: countPytest,
  },
  // Builds the image and runs it, where there is something to do that with.
  container: {
    command: [
      'vitest',
      'run',
      '--config',
      'test/container/vitest.config.ts',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${CONTAINER_REPORT}`,
    ],
    count: () => countVitest(CONTAINER_REPORT),
  },
}

const HELP = `npm test -- [--only NAME] [--slow]
  --only NAME   one of ${[...Object.keys(CHECKS), ...Object.keys(RUNNERS)].join(', ')}; may be repeated
  --slow        the slower tests too (some minutes more)
`

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  fail(error)
}

async function main(args) {
  const { only, slow, help } = readArguments(args)
  if (help) {
    process.stdout.write(HELP)
    return 0
  }
  const { oracle } = await setup()
  rmSync(OUT, { recursive: true, force: true })
  mkdirSync(OUT, { recursive: true })
  const env = toolEnvironment(slow ? { MNEM_TEST_SLOW: '1' } : {})
  const wanted = (name) => only.length === 0 || only.includes(name)
  const results = await Promise.all(
    Object.keys(CHECKS)
      .filter(wanted)
      .map((name) => runCheck(name, env)),
  )
  // One after the other: each starts many processes, and they would slow each other on a small machine.
  for (const name of Object.keys(RUNNERS).filter(wanted)) results.push(await runTests(name, env))
  return report(results, oracle)
}

function readArguments(args) {
  const read = { only: [], slow: false, help: false }
  const names = [...Object.keys(CHECKS), ...Object.keys(RUNNERS)]
  for (let i = 0; i < args.length; i++) {
    if (args[i] === '--slow') read.slow = true
    else if (args[i] === '--help') read.help = true
    else if (args[i] === '--only' && names.includes(args[i + 1])) read.only.push(args[++i])
    else throw new SetupError(`npm test does not know ${args.slice(i).join(' ')}.\n${HELP}`)
  }
  return read
}

async function runCheck(name, env) {
  const [program, ...args] = CHECKS[name]
  const { status, output } = await collect(program, args, {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  })
  say(status === 0 ? `${name}: clean` : `${output.trim()}\n${name}: failed`)
  return { name, passed: status === 0 ? 1 : 0, failed: status === 0 ? 0 : 1, skipped: [] }
}

async function runTests(name, env) {
  const { command, count } = RUNNERS[name]
  say(`\n${name}`)
  const status = await pass(command[0], command.slice(1), env)
  const counted = readCount(count)
  // A runner that found no test, or died before its report, has failed whatever it counted.
  const isBroken =
    counted === undefined ||
    counted.passed + counted.failed + counted.skipped.length === 0 ||
    (status !== 0 && counted.failed === 0)
  if (!isBroken) return { name, ...counted }
  say(`${name} ended with status ${status} and no sound report`)
  return {
    name,
    passed: counted?.passed ?? 0,
    failed: (counted?.failed ?? 0) + 1,
    skipped: counted?.skipped ?? [],
  }
}

function readCount(count) {
  try {
    return count()
  } catch {
    return undefined
  }
}

function countVitest(report) {
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, 'utf8'))
  const tests = testResults.flatMap((file) => file.assertionResults)
  const skipped = tests
    .filter(({ status }) => status !== 'passed' && status !== 'failed')
    .map(({ fullName }) => fullName)
  // A file that could not be loaded has no tests to fail.
  const unloaded = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
  )
  return { passed: numPassedTests, failed: numFailedTests + unloaded.length, skipped }
}

function countPytest() {
  // One element a test; a test that fails and whose clean-up fails too has two.
  const tests = new Map()
  for (const element of readFileSync(PYTEST_REPORT, 'utf8').split('<testcase ').slice(1)) {
    const [, place, name] = /^classname="([^"]*)" name="([^"]*)"/.exec(element) ?? []
    const [, outcome, reason] = /<(failure|error|skipped)\b(?:[^>]*?\bmessage="([^"]*)")?/.exec(element) ?? []
    const key = `${place} ${name}`
    if (outcome === 'failure' || outcome === 'error') tests.set(key, { outcome: 'failed' })
    else if (!tests.has(key))
      tests.set(key, { outcome: outcome ?? 'passed', reason: `${name}: ${reason ?? ''}` })
  }
  const of = (wanted) => Array.from(tests.values()).filter(({ outcome }) => outcome === wanted)
  return {
    passed: of('passed').length,
    failed: of('failed').length,
    skipped: of('skipped').map(({ reason }) => oneLine(reason)),
  }
}

/** The text of an XML attribute, on one line. */
function oneLine(attribute) {
  const marks = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }
  return attribute
    .replace(/&#(x[\da-f]+|\d+);/gi, (_, code) => String.fromCodePoint(Number(code.replace(/^x/i, '0x'))))
    .replace(/&(\w+);/g, (whole, mark) => marks[mark] ?? whole)
    .replace(/\s+/g, ' ')
}

function report(results, oracle) {
  const sum = (key) => results.reduce((total, result) => total + result[key], 0)
  const skipped = results.flatMap(({ name, skipped }) => skipped.map((test) => `${name}: ${test}`))
  say('')
  if (!oracle.available) say(`missing  the oracle: ${oracle.reason}`)
  for (const test of skipped) say(`skipped  ${test}`)
  for (const { name, failed } of results) if (failed > 0) say(`failed   ${name}: ${failed}`)
  const counts = `${sum('passed')} passed, ${sum('failed')} failed`
  say(skipped.length === 0 ? counts : `${counts}, ${skipped.length} skipped`)
  return sum('failed') === 0 ? 0 : 1
}
