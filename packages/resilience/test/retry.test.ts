import {
  BudgetTooSmallError,
  CircuitOpenError,
  currentDeadline,
  Deadline,
  type FloorSource,
  OverloadedError,
  runWithDeadline,
  UpstreamError,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, test } from 'vitest'
import { retry, type RetryOptions, retryEndOf } from '../src/index.ts'
import { calm, decisionsOf, failureOf, networkError, turn } from './support/retrying.ts'

const unavailable = (): Response => new Response('no', { status: 503 })

const hang = (): Promise<never> => new Promise(() => undefined)

/** Work that fails so often, and when it was begun. */
function failing(clock: ManualClock, failures: number, error: unknown = networkError('ECONNRESET')) {
  const begun: number[] = []
  const work = (): string => {
    begun.push(clock.now())
    if (begun.length <= failures) throw error
    return 'done'
  }
  return { begun, work }
}

/** Options with which nothing is left to chance: each wait is as long as its limit. */
const steady = (clock: ManualClock): Pick<RetryOptions, 'clock' | 'random' | 'budget'> => ({
  clock,
  random: () => 1,
  budget: null,
})

test('work that fails of what may pass is done again', async () => {
  const clock = new ManualClock()
  const { begun, work } = failing(clock, 2)
  const answer = retry(work, { ...steady(clock), backoff: { initial: 100, factor: 2 } })
  await turn(clock, 300)
  expect(await answer).toBe('done')
  expect(begun).toEqual([0, 100, 300])
})

test('each attempt knows its number, also the services behind it, and stands in the ledger', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(5_000, { clock })
  const seen: unknown[] = []
  const answer = retry(
    ({ attempt, deadline: own, timeout, signal }) => {
      seen.push([attempt, own.attempt, currentDeadline()?.attempt, timeout, signal.aborted])
      throw networkError('ECONNRESET')
    },
    { ...steady(clock), operation: 'retrieve', deadline, timeout: 700, backoff: { initial: 10 } },
  )
  const failed = failureOf(answer)
  await turn(clock, 40)
  await failed
  expect(seen).toEqual([
    [1, 1, 1, 700, false],
    [2, 2, 2, 700, false],
    [3, 3, 3, 700, false],
  ])
  expect(deadline.ledger.entries.map(({ name, granted, outcome }) => [name, granted, outcome])).toEqual(
    Array.from({ length: 3 }, () => ['retrieve', 700, 'error']),
  )
})

test('with 400 ms, a floor of 120 and waits of 150, attempts begin at 0 and 150, and 200 ms are left for a fallback', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(400, { clock })
  const { begun, work } = failing(clock, 9)
  const failed = failureOf(
    retry(work, { ...steady(clock), deadline, floor: 120, backoff: { initial: 150, factor: 1 } }),
  )
  await turn(clock, 160)
  expect(begun).toEqual([0, 150])
  const error = await failed
  expect(error).toBeInstanceOf(BudgetTooSmallError)
  expect(error).toMatchObject({
    operation: 'retry',
    budget: 400,
    elapsed: 150,
    remaining: 250,
    cause: { code: 'ECONNRESET' },
  })
  expect(retryEndOf(error)).toEqual({ stop: 'no_time', attempts: 2 })
  expect(deadline.remaining()).toBeGreaterThanOrEqual(200)
})

test('a wait, the floor and the reserve may use up what is left, but not more', async () => {
  for (const [budget, attempts] of [
    [300, 2],
    [299, 1],
  ] as const) {
    const clock = new ManualClock()
    const { begun, work } = failing(clock, 9)
    const options = { ...steady(clock), attempts: 2, floor: 120, reserve: 80, backoff: { initial: 100 } }
    const failed = failureOf(retry(work, { ...options, deadline: Deadline.after(budget, { clock }) }))
    await turn(clock, 110)
    await failed
    expect(begun).toHaveLength(attempts)
  }
})

test('a primary that hangs is cut off in time for a fallback, whatever the number of attempts', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(400, { clock })
  const hanging = failureOf(retry(hang, { ...steady(clock), deadline, reserve: 80 }))
  await turn(clock, 320)
  expect(await hanging).toMatchObject({ code: 'BUDGET_TOO_SMALL', cause: { code: 'OPERATION_TIMEOUT' } })
  expect(deadline.remaining()).toBe(80)
})

test('an attempt has a timeout of its own, and the last one is not begun below its floor', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(300, { clock })
  const begun: number[] = []
  const silent = (): Promise<never> => {
    begun.push(clock.now())
    return hang()
  }
  const failed = failureOf(
    retry(silent, { ...steady(clock), deadline, timeout: 200, floor: 90, backoff: { initial: 20 } }),
  )
  await turn(clock, 210)
  expect(begun).toEqual([0])
  expect(retryEndOf(await failed)).toEqual({ stop: 'no_time', attempts: 1 })
})

test('the deadline that ends the first attempt ends them all', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(100, { clock })
  let attempts = 0
  const failed = failureOf(
    retry(
      () => {
        attempts += 1
        return hang()
      },
      { ...steady(clock), deadline, timeout: 500 },
    ),
  )
  await turn(clock, 500)
  const error = await failed
  expect(error).toBe(deadline.reason)
  expect(retryEndOf(error)).toEqual({ stop: 'no_time', attempts: 1 })
  expect(attempts).toBe(1)
})

test('nothing is begun with less than the floor left, or under a deadline that has ended', async () => {
  const clock = new ManualClock()
  const { begun, work } = failing(clock, 0)
  const deadline = Deadline.after(100, { clock })
  const refused = await failureOf(retry(work, { ...steady(clock), deadline, floor: 120 }))
  expect(refused).toMatchObject({ code: 'BUDGET_TOO_SMALL', remaining: 100 })
  expect(retryEndOf(refused)).toEqual({ stop: 'no_time', attempts: 0 })
  deadline.cancel()
  const cancelled = await failureOf(retry(work, { ...steady(clock), deadline }))
  expect(cancelled).toBe(deadline.reason)
  expect(retryEndOf(cancelled)).toEqual({ stop: 'cancelled', attempts: 0 })
  expect(begun).toEqual([])
})

test('a floor that is learned is asked once for each attempt, with what will be left by then, and told how it ended', async () => {
  const clock = new ManualClock()
  const asked: (number | undefined)[] = []
  const told: string[] = []
  const floor = {
    current(remaining?: number): number {
      asked.push(remaining)
      return asked.length > 2 ? Infinity : 0
    },
    record: ({ outcome }: { outcome: string }) => void told.push(outcome),
  }
  const { begun, work } = failing(clock, 9)
  const options = { ...steady(clock), attempts: 9, floor, reserve: 100, backoff: { initial: 50, factor: 1 } }
  const failed = failureOf(retry(work, { ...options, deadline: Deadline.after(1_000, { clock }) }))
  await turn(clock, 200)
  await failed
  expect(asked).toEqual([900, 850, 800])
  expect(told).toEqual(['error', 'error'])
  expect(begun).toEqual([0, 50])
})

test('a learned floor is not asked about an attempt for which nothing would be left', async () => {
  const clock = new ManualClock()
  const asked: (number | undefined)[] = []
  const floor = { current: (remaining?: number): number => (asked.push(remaining), 0) }
  const options = {
    ...steady(clock),
    floor,
    deadline: Deadline.after(100, { clock }),
    backoff: { initial: 100 },
  }
  expect(await failureOf(retry(failing(clock, 9).work, options))).toMatchObject({ code: 'BUDGET_TOO_SMALL' })
  expect(asked).toEqual([100])
})

test('an attempt that was cut off by its own timeout is made again', async () => {
  const clock = new ManualClock()
  let attempts = 0
  const answer = retry(() => ((attempts += 1) === 1 ? hang() : 'done'), {
    ...steady(clock),
    timeout: 100,
    backoff: { initial: 10 },
  })
  await turn(clock, 120)
  expect(await answer).toBe('done')
})

test('after the last attempt its error is thrown as it is', async () => {
  const clock = new ManualClock()
  const error = networkError('ECONNRESET')
  const { work } = failing(clock, 9, error)
  const failed = failureOf(retry(work, { ...steady(clock), attempts: 2, backoff: { initial: 1 } }))
  await turn(clock, 10)
  expect(await failed).toBe(error)
  expect(retryEndOf(error)).toEqual({ stop: 'no_attempts', attempts: 2 })
})

test('what is final is thrown at once, as it is', async () => {
  const clock = new ManualClock()
  for (const error of [
    new TypeError('x'),
    new OverloadedError('full'),
    new CircuitOpenError('open'),
    'stop',
  ]) {
    const { begun, work } = failing(clock, 9, error)
    expect(await failureOf(retry(work, steady(clock)))).toBe(error)
    expect(begun).toHaveLength(1)
  }
})

test('an answer that is a failure is given back as it is when there is no further attempt', async () => {
  const clock = new ManualClock()
  const answers: Response[] = []
  const answer = retry(
    () => {
      const response = unavailable()
      answers.push(response)
      return response
    },
    { ...steady(clock), backoff: { initial: 1 } },
  )
  await turn(clock, 10)
  const last = await answer
  expect(answers).toHaveLength(3)
  expect(last).toBe(answers[2])
  expect(await last.text()).toBe('no')
  // the others have been let go of
  await expect(answers[0]?.text()).rejects.toThrow()
})

test('an answer that the work has read, or is reading, can be a failure too', async () => {
  const clock = new ManualClock()
  const answer = retry(
    async ({ attempt }) => {
      const response = unavailable()
      if (attempt === 1) await response.text()
      else response.body?.getReader()
      return response
    },
    { ...steady(clock), backoff: { initial: 1 } },
  )
  await turn(clock, 10)
  expect((await answer).status).toBe(503)
})

test('an answer that is a failure stands in the ledger as one', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(1_000, { clock })
  await retry(unavailable, { ...steady(clock), deadline, attempts: 1 })
  expect(deadline.ledger.entries).toMatchObject([{ outcome: 'upstream_error' }])
})

test('an answer is given back at once if there is no time for another', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(100, { clock })
  const answer = await retry(unavailable, { ...steady(clock), deadline, backoff: { initial: 200 } })
  expect(await answer.text()).toBe('no')
})

test('a demand to wait is a lower bound', async () => {
  const clock = new ManualClock()
  const begun: number[] = []
  const answer = retry(
    () => {
      begun.push(clock.now())
      return new Response('no', { status: 429, headers: { 'retry-after-ms': '150' } })
    },
    { ...steady(clock), attempts: 4, backoff: { initial: 100, factor: 2 } },
  )
  await turn(clock, 800)
  await answer
  expect(begun).toEqual([0, 150, 350, 750])
})

test('a demand that does not fit is refused at once, never shortened', async () => {
  const clock = new ManualClock()
  const error = Object.assign(new Error('429'), { status: 429, headers: { 'retry-after': '3' } })
  const { begun, work } = failing(clock, 9, error)
  const under = (budget: number): Omit<RetryOptions, 'retryOn'> => ({
    ...steady(clock),
    floor: 100,
    deadline: Deadline.after(budget, { clock }),
  })
  expect(await failureOf(retry(work, under(3_099)))).toBe(error)
  expect(retryEndOf(error)).toEqual({ stop: 'retry_after_too_long', attempts: 1 })
  expect(begun).toEqual([0])
  const fitting = failureOf(retry(work, { ...under(3_100), attempts: 2 }))
  await turn(clock, 3_000)
  await fitting
  expect(begun).toEqual([0, 0, 3_000])
})

test('a wait that does not fit although the demand does is for want of time', async () => {
  const clock = new ManualClock()
  const error = Object.assign(new Error('429'), { status: 429, headers: { 'retry-after-ms': '50' } })
  const { work } = failing(clock, 9, error)
  const deadline = Deadline.after(300, { clock })
  const failed = await failureOf(retry(work, { ...steady(clock), deadline, backoff: { initial: 400 } }))
  expect(failed).toMatchObject({ code: 'BUDGET_TOO_SMALL', cause: error })
})

test('hours are refused, and so is a server that does not want to be called again', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after('1m', { clock })
  const hours = await retry(() => new Response(null, { status: 503, headers: { 'retry-after': '86400' } }), {
    ...steady(clock),
    deadline,
  })
  expect(hours.status).toBe(503)
  const pushback = Object.assign(new Error('14'), {
    code: 14,
    metadata: new Map([['grpc-retry-pushback-ms', '-1']]),
  })
  const { begun, work } = failing(clock, 9, pushback)
  expect(await failureOf(retry(work, { ...steady(clock), deadline }))).toBe(pushback)
  expect(retryEndOf(pushback)).toEqual({ stop: 'not_retryable', attempts: 1 })
  expect(begun).toHaveLength(1)
})

test('the wait is random between 0 and a limit that grows up to its maximum', async () => {
  const clock = new ManualClock()
  const randoms = [0.5, 0, 0.25, 1]
  const { begun, work } = failing(clock, 4)
  const answer = retry(work, {
    clock,
    budget: null,
    attempts: 5,
    random: () => randoms.shift() ?? 1,
    backoff: { initial: 100, factor: 3, max: 400 },
  })
  await turn(clock, 700)
  await answer
  expect(begun).toEqual([0, 50, 50, 150, 550])
})

test('what is not idempotent is not repeated once it may have been sent', async () => {
  const clock = new ManualClock()
  for (const [error, attempts] of [
    [networkError('ECONNREFUSED'), 3],
    [networkError('UND_ERR_CONNECT_TIMEOUT'), 3],
    [networkError('ECONNRESET'), 1],
    [Object.assign(new Error('503'), { status: 503 }), 1],
  ] as const) {
    const { begun, work } = failing(clock, 9, error)
    const failed = failureOf(retry(work, { ...steady(clock), idempotent: false, backoff: { initial: 1 } }))
    await turn(clock, 10)
    expect(await failed).toBe(error)
    expect(begun).toHaveLength(attempts)
    expect(retryEndOf(error)).toEqual({ stop: attempts === 1 ? 'already_sent' : 'no_attempts', attempts })
  }
  const answer = await retry(unavailable, { ...steady(clock), idempotent: false })
  expect(answer.status).toBe(503)
})

test('within an attempt that repeats another nothing is repeated, unless that is wanted', async () => {
  const clock = new ManualClock()
  const { begun: inner, work } = failing(clock, 99)
  const outer = failureOf(
    retry(() => retry(work, { ...steady(clock), backoff: { initial: 1 } }), {
      ...steady(clock),
      backoff: { initial: 1 },
    }),
  )
  await turn(clock, 30)
  // three in the first attempt, then one each
  expect(inner).toHaveLength(5)
  expect(retryEndOf(await outer)).toMatchObject({ stop: 'no_attempts' })

  const { begun: nested, work: again } = failing(clock, 99)
  const whole = failureOf(
    retry(() => retry(again, { ...steady(clock), nested: true, backoff: { initial: 1 } }), {
      ...steady(clock),
      backoff: { initial: 1 },
    }),
  )
  await turn(clock, 40)
  await whole
  expect(nested).toHaveLength(9)
})

test('the reason for a single attempt within another is told', async () => {
  const clock = new ManualClock()
  const stops: unknown[] = []
  const answer = retry(
    async ({ attempt }) => {
      if (attempt === 1) throw networkError('ECONNRESET')
      const error = await failureOf(retry(failing(clock, 9).work, steady(clock)))
      stops.push(retryEndOf(error))
      return 'done'
    },
    { ...steady(clock), backoff: { initial: 1 } },
  )
  await turn(clock, 10)
  expect(await answer).toBe('done')
  expect(stops).toEqual([{ stop: 'already_a_retry', attempts: 1 }])
})

test('retryOn decides, and leaves to the rules what it does not know', async () => {
  const clock = new ManualClock()
  const boom = new Error('boom')
  const { begun, work } = failing(clock, 1, boom)
  const repeated = retry(work, {
    ...steady(clock),
    backoff: { initial: 1 },
    retryOn: (result) => (result.kind === 'error' && result.error === boom ? true : undefined),
  })
  await turn(clock, 5)
  expect(await repeated).toBe('done')
  expect(begun).toHaveLength(2)

  const answer = await retry(unavailable, {
    ...steady(clock),
    retryOn: (result) => (result.kind === 'answer' ? false : undefined),
  })
  expect(answer.status).toBe(503)

  const reset = networkError('ECONNRESET')
  expect(
    await failureOf(retry(failing(clock, 9, reset).work, { ...steady(clock), retryOn: () => false })),
  ).toBe(reset)
  expect(retryEndOf(reset)).toEqual({ stop: 'not_retryable', attempts: 1 })
})

test('any answer can be taken for one to be asked for again', async () => {
  const clock = new ManualClock()
  const states = ['pending', 'pending', 'ready']
  const answer = retry(() => states.shift(), {
    ...steady(clock),
    backoff: { initial: 1 },
    retryOn: (result) => (result.kind === 'answer' ? result.answer === 'pending' : undefined),
  })
  await turn(clock, 5)
  expect(await answer).toBe('ready')
})

test('what a queue or a breaker of this process refused can be retried by choice, after the wait that it asks for', async () => {
  const clock = new ManualClock()
  const { begun, work } = failing(clock, 1, new CircuitOpenError('open', { retryAfter: 40 }))
  const answer = retry(work, {
    ...steady(clock),
    idempotent: false,
    backoff: { initial: 1 },
    retryOn: () => true,
  })
  await turn(clock, 45)
  await answer.catch(() => undefined)
  expect(begun.slice(0, 2)).toEqual([0, 40])
})

test('an error of retryOn is thrown, and nothing is left open', async () => {
  const clock = new ManualClock()
  const mistake = new TypeError('oops')
  const retryOn = (): never => {
    throw mistake
  }
  const response = unavailable()
  expect(await failureOf(retry(() => response, { ...steady(clock), retryOn }))).toBe(mistake)
  await expect(response.text()).rejects.toThrow()
  expect(await failureOf(retry(failing(clock, 9).work, { ...steady(clock), retryOn }))).toBe(mistake)
})

test('a floor that throws ends the call with that, told and without leaving an answer open', async () => {
  const clock = new ManualClock()
  const mistake = new TypeError('oops')
  const floorFailing = (from: number): FloorSource => {
    let asked = 0
    return {
      current() {
        asked += 1
        if (asked >= from) throw mistake
        return 0
      },
    }
  }
  const response = unavailable()
  for (const from of [1, 2]) {
    const call = (): Promise<unknown> =>
      retry(() => response, { ...steady(clock), floor: floorFailing(from) })
    const decisions = await decisionsOf(call)
    const failed = await failureOf(call())
    expect(failed).toBe(mistake)
    expect(retryEndOf(failed)).toEqual({ stop: 'not_retryable', attempts: from - 1 })
    expect(decisions).toHaveLength(from - 1)
  }
  await expect(response.text()).rejects.toThrow()
})

test('what ended by the deadline or by its user is not asked about', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(1_000, { clock })
  let asked = 0
  const failed = failureOf(
    retry(hang, {
      ...steady(clock),
      deadline,
      retryOn: () => {
        asked += 1
        return true
      },
    }),
  )
  await calm()
  deadline.cancel('stop')
  expect(await failed).toBe(deadline.reason)
  expect(asked).toBe(0)
})

test('an answer that comes after its attempt was cut off is let go of', async () => {
  const clock = new ManualClock()
  const late = unavailable()
  let answerLate = (_response: Response): void => undefined
  const failed = failureOf(
    retry(() => new Promise<Response>((resolve) => (answerLate = resolve)), {
      ...steady(clock),
      attempts: 1,
      timeout: 50,
    }),
  )
  await turn(clock, 50)
  expect(await failed).toMatchObject({ code: 'OPERATION_TIMEOUT' })
  answerLate(late)
  await calm()
  await expect(late.text()).rejects.toThrow()
})

test("attempts run under the caller's deadline and in its async context", async () => {
  const clock = new ManualClock()
  const tenant = new AsyncLocalStorage<string>()
  const deadline = Deadline.after(5_000, { clock })
  const seen: unknown[] = []
  const answer = runWithDeadline(deadline, () =>
    tenant.run('acme', () =>
      retry(
        ({ attempt, deadline: own }) => {
          seen.push([tenant.getStore(), own.ledger === deadline.ledger])
          if (attempt === 1) throw networkError('ECONNRESET')
        },
        { ...steady(clock), backoff: { initial: 5 } },
      ),
    ),
  )
  await turn(clock, 10)
  await answer
  expect(seen).toEqual([
    ['acme', true],
    ['acme', true],
  ])
})

test('each decision is told, with the wait or why there is none', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(5_000, { clock })
  const error = networkError('ECONNRESET')
  const decisions = await decisionsOf(async () => {
    const failed = failureOf(
      retry(failing(clock, 9, error).work, {
        ...steady(clock),
        operation: 'retrieve',
        attempts: 2,
        deadline,
        backoff: { initial: 30 },
      }),
    )
    await turn(clock, 40)
    await failed
  })
  expect(decisions).toEqual([
    { operation: 'retrieve', deadline, attempt: 1, stop: undefined, delay: 30, error },
    { operation: 'retrieve', deadline, attempt: 2, stop: 'no_attempts', delay: 0, error },
  ])
  expect(await decisionsOf(() => retry(unavailable, { ...steady(clock), attempts: 1 }))).toMatchObject([
    { stop: 'no_attempts', error: expect.any(UpstreamError) },
  ])
  expect(await decisionsOf(() => retry(() => 'done', steady(clock)))).toEqual([])
})

test('a budget that is used up allows no retry, by destination', async () => {
  const clock = new ManualClock()
  const withdrawn: string[] = []
  const deposited: string[] = []
  const budget = {
    deposit: (destination: string) => void deposited.push(destination),
    withdraw: (destination: string) => withdrawn.push(destination) < 2,
  }
  const error = networkError('ECONNRESET')
  const failed = failureOf(
    retry(failing(clock, 9, error).work, {
      ...steady(clock),
      budget,
      attempts: 9,
      destination: 'search.internal',
      backoff: { initial: 1 },
    }),
  )
  await turn(clock, 20)
  expect(await failed).toBe(error)
  expect(retryEndOf(error)).toEqual({ stop: 'no_budget', attempts: 2 })
  expect(deposited).toEqual(['search.internal'])
  expect(withdrawn).toHaveLength(2)
})

test('a call within an attempt that repeats another adds nothing to the budget', async () => {
  const clock = new ManualClock()
  let deposits = 0
  const budget = { deposit: () => void (deposits += 1), withdraw: () => true }
  const once = { ...steady(clock), attempts: 1, budget }
  const answer = retry(
    async ({ attempt }) => {
      await retry(() => 'searched', once)
      if (attempt < 3) throw networkError('ECONNRESET')
    },
    { ...steady(clock), backoff: { initial: 1 } },
  )
  await turn(clock, 10)
  await answer
  expect(deposits).toBe(1)
})

test('a retry that is not made for another reason costs the budget nothing', async () => {
  const clock = new ManualClock()
  let withdrawn = 0
  const budget = { deposit: () => undefined, withdraw: () => (withdrawn += 1) > 0 }
  await failureOf(retry(failing(clock, 9).work, { ...steady(clock), budget, attempts: 1 }))
  await failureOf(retry(failing(clock, 9, new Error('boom')).work, { ...steady(clock), budget }))
  const deadline = Deadline.after(50, { clock })
  await failureOf(retry(failing(clock, 9).work, { ...steady(clock), budget, deadline }))
  expect(withdrawn).toBe(0)
})

test.each([
  ['attempts', { attempts: 0 }],
  ['attempts', { attempts: 2.5 }],
  ['timeout', { timeout: 'soon' }],
  ['floor', { floor: -1 }],
  ['reserve', { reserve: Number.NaN }],
  ['backoff.initial', { backoff: { initial: 'x' } }],
  ['backoff.max', { backoff: { max: -1 } }],
  ['backoff.factor', { backoff: { factor: 0.5 } }],
  ['backoff: ', { backoff: 200 }],
  ['backoff: ', { backoff: '200ms' }],
  ['hedge: ', { hedge: '300ms' }],
  ['hedge: ', { hedge: null }],
  ['hedge.after', { hedge: { after: {} } }],
  ['budget', { budget: {} }],
  ['budget', { budget: 0.2 }],
  ['operation', { operation: 7 }],
  ['operation', { operation: '' }],
  ['destination', { destination: new URL('http://search/') }],
  ['jitter', { backoff: { jitter: true } }],
  ['hedge.after', { hedge: { after: 'later' } }],
  ['hedge.after', { hedge: { after: null } }],
  ['delay', { hedge: { after: 1, delay: 1 } }],
  ['retries', { retries: 3 }],
  ['retryOn', { retryOn: 'always' }],
  ['random', { random: 0.5 }],
])('an option that cannot be read is named, and nothing is begun: %s', async (name, options) => {
  let begun = 0
  const failed = await failureOf(retry(() => (begun += 1), options as RetryOptions<number>))
  expect(failed).toBeInstanceOf(TypeError)
  expect(String(failed)).toContain(name)
  expect(begun).toBe(0)
})
