import { expect, test } from 'vitest'
import { runScript } from '../soak/run-script.ts'

const fuzz = new URL('fuzz.mjs', import.meta.url)

test(
  'law 11: nothing a stranger writes throws, extends a budget, or takes more than linear time and what it needs of memory',
  { timeout: 180_000 },
  async () => {
    const { code, output } = await runScript(fuzz, ['--seconds', '5'], ['--expose-gc'])
    expect(output).toMatch(/\b0 faults, seed \d+\n$/)
    expect(code).toBe(0)
  },
)
