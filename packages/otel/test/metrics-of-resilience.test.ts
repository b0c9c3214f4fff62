import {
  breakerMoved,
  floorJudged,
  floorQuestionable,
  hedgeStarted,
  loopLagged,
  queueJudged,
  retryDecided,
} from '@timebudget/core'
import { describe, expect, test } from 'vitest'
import { metered } from './metered.ts'

describe('metrics of resilience', () => {
  test('say how long callers stood in a queue, and what came of it; every decision is there from the first on', async () => {
    await using recorded = metered()
    const caller = { queue: 'gpu', deadline: undefined, predicted: 0, waiting: 0, running: 1 }
    queueJudged.publish(() => ({ ...caller, decision: 'admitted', waited: 1_500 }))
    queueJudged.publish(() => ({ ...caller, decision: 'shed', waited: 0 }))
    const decided = async (decision: string): Promise<number | undefined> =>
      recorded.value('deadline.queue.decisions', { 'deadline.queue': 'gpu', 'deadline.decision': decision })
    expect([await decided('admitted'), await decided('shed'), await decided('left')]).toEqual([1, 1, 0])
    expect(
      await recorded.histogram('deadline.queue.wait.duration', { 'deadline.decision': 'admitted' }),
    ).toMatchObject({ count: 1, sum: 1.5 })
  })

  test('say which state a breaker is in, and how often it came into it', async () => {
    await using recorded = metered()
    const move = (from: 'closed' | 'open' | 'half_open', to: 'closed' | 'open' | 'half_open'): void =>
      breakerMoved.publish(() => ({ breaker: 'payments', from, to }))
    const states = async (name: string): Promise<unknown> =>
      Object.fromEntries(
        ((await recorded.series(name)) ?? []).map(([attributes, value]) => [
          attributes['deadline.breaker.state'],
          value,
        ]),
      )
    move('closed', 'open')
    expect(await states('deadline.breaker.state')).toEqual({ closed: 0, open: 1, half_open: 0 })
    move('open', 'half_open')
    move('half_open', 'open')
    move('open', 'half_open')
    move('half_open', 'closed')
    expect(await states('deadline.breaker.state')).toEqual({ closed: 1, open: 0, half_open: 0 })
    expect(await states('deadline.breaker.moves')).toEqual({ closed: 1, open: 2, half_open: 2 })
  })

  test('say how often was retried and why not, the retry budget among the reasons', async () => {
    await using recorded = metered()
    const failed = { operation: 'quote', deadline: undefined, attempt: 1, delay: 0, error: undefined }
    retryDecided.publish(() => ({ ...failed, stop: undefined }))
    retryDecided.publish(() => ({ ...failed, stop: 'no_budget' }))
    hedgeStarted.publish(() => ({ operation: 'quote', deadline: undefined, after: 5 }))
    const decided = async (decision: string): Promise<number | undefined> =>
      recorded.value('deadline.retry.decisions', {
        'deadline.operation': 'quote',
        'deadline.decision': decision,
      })
    expect([await decided('retry'), await decided('no_budget'), await decided('no_time')]).toEqual([1, 1, 0])
    expect(await recorded.value('deadline.retry.hedges', { 'deadline.operation': 'quote' })).toBe(1)
  })

  test('say what learned floors decide, and which of them are questionable', async () => {
    await using recorded = metered()
    const start = { operation: 'generate', remaining: 100, floor: 800, chance: 0.01 }
    floorJudged.publish(() => ({ ...start, decision: 'refused' }))
    floorJudged.publish(() => ({ ...start, decision: 'explored' }))
    floorJudged.publish(() => ({ ...start, decision: 'refused' }))
    floorQuestionable.publish(() => ({
      operation: 'generate',
      kind: 'refuses_most',
      share: 0.7,
      message: 'it refuses 70 %',
    }))
    const name = { 'deadline.operation': 'generate' }
    expect(
      await recorded.value('deadline.floor.decisions', { ...name, 'deadline.decision': 'refused' }),
    ).toBe(2)
    expect(await recorded.value('deadline.floor.decisions', { ...name, 'deadline.decision': 'capped' })).toBe(
      0,
    )
    expect(
      await recorded.value('deadline.floor.doubts', { ...name, 'deadline.floor.doubt': 'refuses_most' }),
    ).toBe(1)
  })

  test('say for how long the event loop was blocked', async () => {
    await using recorded = metered()
    loopLagged.publish(() => ({ lag: 250 }))
    expect(await recorded.histogram('deadline.loop.lag')).toMatchObject({ count: 1, sum: 0.25 })
  })
})
