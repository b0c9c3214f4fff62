import { defineConfig } from 'vitest/config'
import { CountReporter } from './test/support/count-reporter.ts'
import { LongestFirst } from './test/support/longest-first.ts'
import { sharingAProcess } from './test/support/sharing-a-process.ts'

// not `module`: that is for bundlers, and @opentelemetry/api has files there which Node does not load
const conditions = ['@timebudget/source', 'node', 'development|production']

const all = ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts', 'examples/*/test/**/*.test.ts']
const none = ['**/node_modules/**', '**/dist/**', 'test/support/**']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    projects: [
      { extends: true, test: { name: 'apart', include: all, exclude: [...none, ...sharingAProcess] } },
      {
        extends: true,
        test: { name: 'sharing', include: [...sharingAProcess], exclude: none, isolate: false },
      },
    ],
    reporters: ['default', new CountReporter()],
    pool: 'forks',
    // most tests wait for real milliseconds: on two cores three of them leave no core without work
    maxWorkers: 3,
    // elsewhere vitest remembers what took long, and what failed
    ...(process.env['CI'] === undefined ? {} : { sequence: { sequencer: LongestFirst } }),
    execArgv: ['--expose-gc'],
    // real sockets and real milliseconds on a machine that others use too: a fault fails three times, a hiccup does not
    retry: process.env['CI'] === undefined ? 0 : 2,
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
})
