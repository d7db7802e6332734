import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { renderMarkdown } from '../scripts/markdown.ts'
import { renderOpenrpc } from '../scripts/openrpc.ts'
import { GROUPS } from '../src/index.ts'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
const HINT = 'run `node protocol/scripts/generate.ts`'

describe('the documents made from the schemas', () => {
  it('openrpc.json says what the schemas say', () => {
    expect(read('../openrpc.json') === renderOpenrpc(), HINT).toBe(true)
  })

  it('docs/protocol.md says what the schemas say', () => {
    expect(read('../../docs/protocol.md') === renderMarkdown(), HINT).toBe(true)
  })

  it('openrpc.json has every method once, each reference resolved', () => {
    const text = read('../openrpc.json')
    const document = JSON.parse(text)
    const names = document.methods.map(({ name }: { name: string }) => name)
    expect(names).toEqual(GROUPS.flatMap(({ methods }) => methods.map(({ method }) => method)))
    expect(new Set(names).size).toBe(names.length)
    for (const [, name] of text.matchAll(/"\$ref": "([^"]+)"/g)) {
      expect(name).toMatch(/^#\/components\/schemas\//)
      expect(document.components.schemas).toHaveProperty((name as string).split('/').pop() as string)
    }
  })
})
