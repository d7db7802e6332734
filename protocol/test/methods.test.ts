import { describe, expect, it } from 'vitest'
import { CAPABILITIES, ERRORS, METHODS } from '../src/index.ts'
import { received } from './raw.ts'

describe.each([...METHODS])('%s', (name, { method }) => {
  it('goes by its own name', () => {
    expect(method.method).toBe(name)
  })

  it('takes its own example', () => {
    expect(method.params.safeParse(received(method.example.params)).error).toBeUndefined()
  })

  it('answers with its own example', () => {
    if (method.result === null) expect(method.example.result).toBeUndefined()
    else expect(method.result.safeParse(method.example.result).error).toBeUndefined()
  })

  it('is one sentence long', () => {
    expect(method.doc).toMatch(/^[A-Z].*\.$/)
  })
})

describe('what clients call', () => {
  it('refuses a field that it does not know, in every request', () => {
    for (const { method } of METHODS.values()) {
      if (method.result === null) continue
      const params = { ...(received(method.example.params) as object), typo: 1 }
      expect(method.params.safeParse(params).success, method.method).toBe(false)
    }
  })

  it('names as capabilities the groups that are served in full', () => {
    expect(CAPABILITIES).toEqual([
      'memory',
      'log',
      'stats',
      'history',
      'branches',
      'merge',
      'verify',
      'transfer',
      'backup',
      'delete',
      'purge',
    ])
  })

  it('has one code for each kind of error', () => {
    const codes = Object.values(ERRORS).map(({ code }) => code)
    expect(new Set(codes).size).toBe(codes.length)
  })
})
