import { defineConfig } from 'vitest/config'
import { CountReporter } from '../count-reporter.ts'

export default defineConfig({
  cacheDir: '../../../node_modules/.vite/counted-run',
  test: { reporters: ['default', new CountReporter()] },
})
