import { defineConfig } from 'vitest/config'
import { CountReporter } from './test/support/count-reporter.ts'

// not `module`: that is for bundlers, and @opentelemetry/api has files there which Node does not load
const conditions = ['@timebudget/source', 'node', 'development|production']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts', 'examples/*/test/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**', 'test/support/**'],
    reporters: ['default', new CountReporter()],
    pool: 'forks',
    // most tests wait for real milliseconds: on two cores three of them leave no core without work
    maxWorkers: 3,
    execArgv: ['--expose-gc'],
    // real sockets and real milliseconds on a machine that others use too: a fault fails three times, a hiccup does not
    retry: process.env['CI'] === undefined ? 0 : 2,
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
})
