import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const folder = fileURLToPath(new URL('./support/counted-run/', import.meta.url))
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))

function runOf(...files: string[]): { status: number | null; lastLine: string | undefined } {
  const { status, stdout } = spawnSync(process.execPath, [vitest, 'run', '--root', folder, ...files], {
    encoding: 'utf8',
  })
  return { status, lastLine: stdout.trimEnd().split('\n').at(-1) }
}

test('the last line of a run counts what passed, failed and was skipped', () => {
  expect(runOf('tests.test.ts')).toEqual({ status: 1, lastLine: '2 passed, 1 failed, 3 skipped' })
})

test('a test file that does not load counts as a failure', () => {
  expect(runOf('does-not-load.test.ts')).toEqual({ status: 1, lastLine: '0 passed, 1 failed' })
})
