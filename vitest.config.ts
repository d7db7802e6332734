import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{core,protocol,server,test}/**/*.test.ts'],
    // The container's tests are a run of their own (test/container/vitest.config.ts).
    exclude: ['**/node_modules/**', 'test/container/**'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
  },
})
