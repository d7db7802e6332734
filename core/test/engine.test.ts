import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryEngine } from '../src/engine/memory.ts'
import { SqliteEngine } from '../src/engine/sqlite.ts'
import { engineContract } from './engine-contract.ts'

engineContract('in-memory', async () => {
  const engine = new MemoryEngine()
  return { engine, end: () => engine.close() }
})

engineContract('SQLite', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'mnem-engine-'))
  const engine = await SqliteEngine.open(dir)
  return {
    engine,
    end: async () => {
      await engine.close()
      rmSync(dir, { recursive: true })
    },
  }
})
