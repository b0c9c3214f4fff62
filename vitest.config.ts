import { defineConfig } from 'vitest/config'

export default defineConfig({
  ssr: { resolve: { conditions: ['@timebudget/source', 'node', 'import', 'default'] } },
  resolve: { conditions: ['@timebudget/source', 'node', 'import', 'default'] },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts', 'examples/*/test/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    pool: 'forks',
    execArgv: ['--expose-gc'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
})
