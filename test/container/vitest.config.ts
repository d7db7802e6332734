import { defineConfig } from 'vitest/config'

/** The image is built once and takes minutes, so these tests are a run of their own: `npm run test:container`. */
export default defineConfig({
  test: {
    include: ['test/container/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 600_000,
    pool: 'forks',
    fileParallelism: false,
  },
})
