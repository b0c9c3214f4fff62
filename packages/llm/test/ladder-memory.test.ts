import { getEventListeners } from 'node:events'
import { Deadline, UpstreamError } from '@timebudget/core'
import { ladder, model, rule } from '@timebudget/llm'
import { expect, test } from 'vitest'
import { says } from './support/saying.ts'

function heap(): number {
  for (let i = 0; i < 4; i++) globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
const down = new UpstreamError('503')
test(
  'twenty thousand answers leave nothing behind, nor do streams that were left',
  { timeout: 120_000 },
  async () => {
    const stop = new AbortController()
    const answers = ladder<number>([
      model('big', (nth) => says(nth % 3 === 0 ? down : 'yes'), { attempts: 1, breaker: null }),
      rule(() => 'sorry'),
    ])
    const round = async (count: number): Promise<void> => {
      for (let nth = 0; nth < count; nth += 1) {
        const ask = { signal: stop.signal, deadline: Deadline.after('1h') }
        if (nth % 4 === 0) for await (const _ of answers.stream(nth, ask)) break
        else if (nth % 4 === 1) await answers.stream(nth, ask)[Symbol.asyncIterator]().return?.()
        else await answers.run(nth, ask)
        ask.deadline.settle()
      }
    }
    await round(2_000)
    const before = heap()
    await round(20_000)
    const grown = heap() - before
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0)
    // 100 bytes each would be 2 MB
    expect(grown).toBeLessThan(2_000_000)
  },
)
