import { defineConfig } from 'vitest/config'
import { CountReporter } from '../count-reporter.ts'

export default defineConfig({ test: { reporters: ['default', new CountReporter()] } })
