import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { startChain } from '../src/chain.ts'
import { planLoad } from '../src/load.ts'
import { measure, type Measured } from '../src/scenario.ts'
import { parseServerTiming } from '../src/server-timing.ts'

// The services run as users run them: compiled, each in a process of its own.
const directory = new URL('../dist/', import.meta.url)

// A tenth of a second of decoding for half of all answers, and about twice the load that two slots can take.
const settings = { BUDGET_MS: '800', LLM_SLOTS: '2', LLM_MS_PER_TOKEN: '4' }
const users = planLoad({ seed: 'test', perSecond: 30, seconds: 3 })

async function run(timebudget: boolean): Promise<Measured> {
  const chain = await startChain({ timebudget, settings, directory })
  try {
    return await measure(chain, { users, patience: 800 })
  } finally {
    await chain.stop()
  }
}

describe('the chain under a load that is too much for its model', () => {
  test(
    'wastes fewer decode seconds with timebudget than without, and next to none on users who have left',
    { timeout: 60_000 },
    async () => {
      expect(existsSync(new URL('gateway.js', directory)), 'the chain is built: npm run build').toBe(true)
      const without = await run(false)
      const withBudget = await run(true)

      expect(without.summary.decoding?.tokensAfterLeaving).toBeGreaterThan(0)
      expect(withBudget.summary.decoding?.secondsForNobody).toBeLessThan(
        without.summary.decoding?.secondsForNobody ?? 0,
      )
      expect(withBudget.summary.decoding?.secondsAfterLeaving).toBeLessThan(
        (without.summary.decoding?.secondsAfterLeaving ?? 0) / 4,
      )

      const header = withBudget.visits.find((visit) => visit.answered)?.serverTiming ?? ''
      expect(parseServerTiming(header).map(({ path }) => path)).toEqual(
        expect.arrayContaining([
          'orchestrator',
          'orchestrator.retrieve',
          'orchestrator.rerank',
          'orchestrator.generate',
          'orchestrator.generate.queue',
          'orchestrator.generate.decode',
        ]),
      )
    },
  )

  test('that cannot start ends whatever of it has, and says why', async () => {
    const starting = startChain({ timebudget: true, settings: { BUDGET_MS: 'soon' }, directory })
    await expect(starting).rejects.toThrow(/gateway ended with 1[^]*BUDGET_MS is not a number: soon/)
  })
})
