import type { Reporter, TestModule, TestSuite } from 'vitest/node'

interface Counts {
  passed: number
  failed: number
  skipped: number
}

/**
 * Prints `N passed, N failed` (and `, N skipped`) as the last line of the run.
 * What fails outside a test, a file that does not load or an unhandled rejection, counts as one failed.
 */
export class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const counts = count(modules)
    counts.failed += unhandled.length
    // Other reporters print after their own summaries are awaited: only the exit comes after them all.
    process.once('exit', () => process.stdout.write(`${line(counts)}\n`))
  }
}

function count(modules: readonly TestModule[]): Counts {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  for (const module of modules) {
    counts.failed += failuresOutsideTests(module)
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      // A test that never ended, because its worker died, did not pass.
      counts[state === 'pending' ? 'failed' : state] += 1
    }
  }
  return counts
}

function failuresOutsideTests(module: TestModule): number {
  const suites: Array<TestModule | TestSuite> = [module, ...module.children.allSuites()]
  return suites.filter((suite) => suite.errors().length > 0).length
}

function line({ passed, failed, skipped }: Counts): string {
  const ended = `${passed} passed, ${failed} failed`
  return skipped === 0 ? ended : `${ended}, ${skipped} skipped`
}
