import { Deadline, type HedgeStarted, hedgeStarted, type Outcome, UpstreamError } from '@timebudget/core'
import { ManualClock, slowUpstream } from '@timebudget/core/testing'
import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, test } from 'vitest'
import { Latency, retry, RetryBudget, type RetryOptions, retryEndOf } from '../src/index.ts'
import { calm, decisionsOf, failureOf, networkError, serve, turn } from './support/retrying.ts'

interface Call {
  readonly at: number
  readonly attempt: number
  readonly signal: AbortSignal
  answer(value: unknown): void
  fail(error: unknown): void
}

/** Work whose attempts a test ends one by one. */
function scripted(clock: ManualClock) {
  const calls: Call[] = []
  const work = ({ attempt, signal }: { attempt: number; signal: AbortSignal }): Promise<unknown> =>
    new Promise((answer, fail) => {
      calls.push({ at: clock.now(), attempt, signal, answer, fail })
      signal.addEventListener('abort', () => fail(signal.reason))
    })
  const call = (index: number): Call => {
    const found = calls[index]
    if (found === undefined) throw new Error(`attempt ${index + 1} was not begun`)
    return found
  }
  return { calls, call, work }
}

function hedged(clock: ManualClock, options: RetryOptions<unknown> = {}) {
  const deadline = Deadline.after(10_000, { clock })
  const script = scripted(clock)
  const result = retry(script.work, {
    clock,
    deadline,
    budget: null,
    random: () => 0,
    hedge: { after: 100 },
    ...options,
  })
  result.catch(() => undefined)
  const outcomes = (): (Outcome | undefined)[] => deadline.ledger.entries.map(({ outcome }) => outcome)
  return { ...script, deadline, result, outcomes }
}

test('what takes longer than the given time gets a second attempt beside it; the first success wins', async () => {
  const clock = new ManualClock()
  const { calls, call, result, outcomes } = hedged(clock)
  await turn(clock, 99)
  expect(calls).toHaveLength(1)
  await turn(clock, 1)
  expect(calls.map(({ at, attempt }) => [at, attempt])).toEqual([
    [0, 1],
    [100, 2],
  ])
  call(1).answer('second')
  expect(await result).toBe('second')
  expect(outcomes()).toEqual(['cancelled', 'ok'])
  expect(call(0).signal.reason).toMatchObject({ code: 'CANCELLED', message: 'another attempt was quicker' })
})

test('the first attempt may still win, and the hedge is cancelled', async () => {
  const clock = new ManualClock()
  const { call, result, outcomes } = hedged(clock)
  await turn(clock, 120)
  call(0).answer('first')
  expect(await result).toBe('first')
  expect(outcomes()).toEqual(['ok', 'cancelled'])
  expect(call(1).signal.aborted).toBe(true)
})

test('what is quick gets no second attempt, and leaves no timer', async () => {
  const clock = new ManualClock()
  const { calls, call, result } = hedged(clock)
  await turn(clock, 50)
  call(0).answer('first')
  expect(await result).toBe('first')
  // the deadline's own
  expect(clock.pendingTimers).toBe(1)
  await turn(clock, 100)
  expect(calls).toHaveLength(1)
})

test('when the first fails while the hedge runs, the hedge is waited for', async () => {
  const clock = new ManualClock()
  const { calls, call, result } = hedged(clock)
  await turn(clock, 110)
  call(0).fail(networkError('ECONNRESET'))
  await calm()
  call(1).answer('second')
  expect(await result).toBe('second')
  expect(calls).toHaveLength(2)
})

test('when the hedge fails, the first is waited for', async () => {
  const clock = new ManualClock()
  const { call, result, outcomes } = hedged(clock)
  await turn(clock, 110)
  call(1).fail(networkError('ECONNRESET'))
  await calm()
  expect(outcomes()[0]).toBeUndefined()
  call(0).answer('first')
  expect(await result).toBe('first')
})

test('when both fail there is another attempt, of which the hedge counts as one', async () => {
  const clock = new ManualClock()
  const { calls, call, result } = hedged(clock)
  await turn(clock, 110)
  call(0).fail(networkError('ECONNRESET'))
  call(1).fail(networkError('ECONNRESET'))
  await turn(clock, 1)
  expect(calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
  // no hedge beside a repetition
  await turn(clock, 300)
  expect(calls).toHaveLength(3)
  const last = networkError('ECONNRESET')
  call(2).fail(last)
  expect(await failureOf(result)).toBe(last)
  expect(retryEndOf(last)).toEqual({ stop: 'no_attempts', attempts: 3 })
})

test('a failure that the other would end with too ends both', async () => {
  const clock = new ManualClock()
  const { call, result, outcomes } = hedged(clock)
  await turn(clock, 110)
  const final = new TypeError('bad request')
  call(0).fail(final)
  expect(await failureOf(result)).toBe(final)
  expect(outcomes()).toEqual(['error', 'cancelled'])
})

test('what one of the two was told to wait holds after the other has failed', async () => {
  const clock = new ManualClock()
  const { calls, call } = hedged(clock)
  await turn(clock, 110)
  call(0).fail(new UpstreamError('busy', { retryAfter: 300 }))
  await turn(clock, 50)
  call(1).fail(networkError('ECONNRESET'))
  await turn(clock, 260)
  expect(calls.map(({ at }) => at)).toEqual([0, 100, 410])
})

test('answers of the slower one are let go of, whenever they come', async () => {
  const clock = new ManualClock()
  const { call, result } = hedged(clock)
  await turn(clock, 110)
  const [quick, slow] = [new Response('quick'), new Response('slow')]
  call(0).answer(quick)
  call(1).answer(slow)
  expect(await result).toBe(quick)
  await calm()
  await expect(slow.text()).rejects.toThrow()
  expect(await quick.text()).toBe('quick')
})

test.each([
  ['it is not idempotent', { idempotent: false }],
  ['there is one attempt', { attempts: 1 }],
  ['the budget is used up', { budget: new RetryBudget({ ratio: 0, minPerSecond: 0 }) }],
  ['there is too little time', { floor: 9_950 }],
  ['nothing would be left of it after the reserve', { reserve: 9_900 }],
  ['it is not known how long it takes', { hedge: { after: new Latency() } }],
])('there is no hedge if %s', async (_, options) => {
  const clock = new ManualClock()
  const { calls, deadline } = hedged(clock, options)
  await turn(clock, 300)
  expect(calls).toHaveLength(1)
  // nor one that was refused
  expect(deadline.ledger.entries).toHaveLength(1)
})

test('there is no hedge within an attempt that repeats another, unless that is wanted', async () => {
  for (const [nested, expected] of [
    [false, 1],
    [true, 2],
  ] as const) {
    const clock = new ManualClock()
    const { calls, work } = scripted(clock)
    const options = { clock, budget: null, random: () => 0 }
    void retry(({ attempt }) => {
      if (attempt === 1) throw networkError('ECONNRESET')
      return retry(work, { ...options, nested, hedge: { after: 100 } })
    }, options)
    await turn(clock, 150)
    expect(calls).toHaveLength(expected)
  }
})

test('hedges and retries share one budget', async () => {
  const clock = new ManualClock()
  const budget = new RetryBudget({ ratio: 0, minPerSecond: 1, window: '1s', clock })
  const { calls, call, result } = hedged(clock, { budget })
  await turn(clock, 110)
  expect(calls).toHaveLength(2)
  const last = networkError('ECONNRESET')
  call(0).fail(networkError('ECONNRESET'))
  call(1).fail(last)
  expect(await failureOf(result)).toBe(last)
  expect(retryEndOf(last)).toEqual({ stop: 'no_budget', attempts: 2 })
})

test('the time is learned: the 95th percentile of what attempts take, those that are cancelled counted as longer', async () => {
  const clock = new ManualClock()
  const latency = new Latency({ clock, minSamples: 20 })
  const options = { hedge: { after: latency } }
  for (let index = 0; index < 20; index += 1) {
    const { call, result } = hedged(clock, options)
    await turn(clock, 40)
    call(0).answer('done')
    await result
  }
  expect(latency.samples).toBe(20)
  const { calls, call, result } = hedged(clock, options)
  const startedAt = clock.now()
  await turn(clock, 60)
  expect(calls).toHaveLength(2)
  expect(call(1).at - startedAt).toBeGreaterThan(35)
  call(1).answer('done')
  await result
  expect(latency.samples).toBe(22)
})

test('a cancelled attempt counts as one that takes longer, a quick one as what it took', async () => {
  const noted: unknown[] = []
  class Noted extends Latency {
    override record(spent: number, options?: { readonly cut?: boolean }): void {
      noted.push([spent, options?.cut])
    }
    override quantile(): number {
      return 100
    }
  }
  const clock = new ManualClock()
  const { call, result } = hedged(clock, { hedge: { after: new Noted() } })
  await turn(clock, 130)
  call(1).answer('second')
  await result
  await calm()
  expect(noted).toEqual([
    [30, false],
    [130, true],
  ])
})

test('an attempt that fails says nothing of how long it takes', async () => {
  const clock = new ManualClock()
  const latency = new Latency({ clock })
  const { call, result } = hedged(clock, { hedge: { after: latency } })
  await calm()
  call(0).fail(new TypeError('x'))
  await failureOf(result)
  expect(latency.samples).toBe(0)
})

test('a floor that learns the same latency is the only one to teach it', async () => {
  const clock = new ManualClock()
  const latency = new Latency({ clock })
  const floor = { latency, current: () => 0, record: ({ spent }: { spent: number }) => latency.record(spent) }
  const { call, result } = hedged(clock, { floor, hedge: { after: latency } })
  await calm()
  call(0).answer('done')
  await result
  expect(latency.samples).toBe(1)
})

test('a user who leaves ends both, and neither is a failure', async () => {
  const clock = new ManualClock()
  const { deadline, result, outcomes, calls } = hedged(clock)
  await turn(clock, 110)
  const decisions = await decisionsOf(async () => {
    deadline.cancel('stop')
    await failureOf(result)
  })
  expect(await failureOf(result)).toBe(deadline.reason)
  expect(outcomes()).toEqual(['cancelled', 'cancelled'])
  expect(decisions).toMatchObject([{ stop: 'cancelled' }])
  expect(calls).toHaveLength(2)
})

test('a hedge is told of, runs in the async context of the caller, and is decided on by nobody', async () => {
  const clock = new ManualClock()
  const started: HedgeStarted[] = []
  const unsubscribe = hedgeStarted.subscribe((event) => started.push(event))
  const tenant = new AsyncLocalStorage<string>()
  const deadline = Deadline.after(10_000, { clock })
  const seen: unknown[] = []
  const decisions = await decisionsOf(async () => {
    const result = tenant.run('acme', () =>
      retry(
        ({ attempt }) => {
          seen.push(tenant.getStore())
          return attempt === 1 ? new Promise(() => undefined) : 'done'
        },
        { clock, deadline, operation: 'retrieve', hedge: { after: 100 }, budget: null },
      ),
    )
    await turn(clock, 100)
    await result
  })
  unsubscribe()
  expect(seen).toEqual(['acme', 'acme'])
  expect(started).toEqual([{ operation: 'retrieve', deadline, after: 100 }])
  expect(decisions).toEqual([])
})

test("the slower one's connection closes", async () => {
  await using slow = await slowUpstream()
  await using quick = await serve((response) => response.end('quick'))
  const answer = await retry(
    ({ signal, attempt }) => fetch(attempt === 1 ? slow.url : quick.url, { signal }),
    { hedge: { after: 50 }, budget: null },
  )
  expect(await answer.text()).toBe('quick')
  const request = await slow.nextRequest()
  expect(await request.abandoned).toBe(true)
})
