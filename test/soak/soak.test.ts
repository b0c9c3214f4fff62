import { expect, test } from 'vitest'
import { runScript } from './run-script.ts'

const soak = new URL('soak.mjs', import.meta.url)

test.each([
  ['a seed that has been tried', ['--seed', '11']],
  ['another one every time', []],
])(
  'random chains under random mishaps settle all they make, and servers say what callers saw: %s',
  { timeout: 180_000 },
  async (_which, seed) => {
    const { code, output } = await runScript(soak, ['--seconds', '8', ...seed])
    expect(output).toMatch(/\b0 faults, seed \d+\n$/)
    expect(code).toBe(0)
  },
)
