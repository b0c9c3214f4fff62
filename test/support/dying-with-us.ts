import { findProgram } from './requirements.ts'

/** What to put before a program so that it ends with the test run, however that ends; Linux has `setpriv`. */
export function dyingWithUs(...options: readonly string[]): string[] {
  return findProgram('setpriv') === undefined ? [] : ['setpriv', '--pdeathsig=QUIT', ...options]
}
