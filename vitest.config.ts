import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{core,protocol,server,test}/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
  },
})
