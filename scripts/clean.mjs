// Run in a package's folder before its build: tsc leaves the output of deleted sources, and turbo would cache it.
import { rmSync } from 'node:fs'

rmSync('dist', { recursive: true, force: true })
