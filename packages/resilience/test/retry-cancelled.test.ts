import {
  CancelledError,
  ClientClosedError,
  Deadline,
  operation,
  ShutdownError,
  type WorkLate,
  workLate,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { retry, retryEndOf } from '../src/index.ts'
import { calm, decisionsOf, failureOf, networkError, told } from './support/retrying.ts'

const reset = networkError('ECONNRESET')
const hang = (): Promise<never> => new Promise(() => undefined)

/** A call that waits 100 ms after a first failure, before its clock is turned any further. */
async function waiting(options: { signal?: AbortSignal } = {}) {
  const clock = new ManualClock()
  const deadline = Deadline.after(1_000, { clock })
  let attempts = 0
  const work = (): never => {
    attempts += 1
    throw reset
  }
  const failed = failureOf(
    retry(work, { ...options, clock, deadline, random: () => 1, budget: null, backoff: { initial: 100 } }),
  )
  await calm()
  return { clock, deadline, failed, attempts: () => attempts }
}

/** Every way in which users abort. */
const aborts: [string, (controller: AbortController) => void][] = [
  ['abort()', (controller) => controller.abort()],
  ["abort('stop')", (controller) => controller.abort('stop')],
  ['abort(new DOMException())', (controller) => controller.abort(new DOMException('stop', 'AbortError'))],
  ['abort(new Error())', (controller) => controller.abort(new Error('stop', { cause: 'the user' }))],
  ['abort(null)', (controller) => controller.abort(null)],
]

test.each(aborts)('%s between two attempts settles at once as cancelled', async (_, abort) => {
  const controller = new AbortController()
  const { clock, failed, attempts, deadline } = await waiting({ signal: controller.signal })
  abort(controller)
  const error = await failed
  expect(error).toMatchObject({ name: 'CancelledError', code: 'CANCELLED', outcome: 'cancelled' })
  expect(error).toBeInstanceOf(CancelledError)
  expect(told(error).at(-1)).toBe('ECONNRESET')
  expect(retryEndOf(error)).toEqual({ stop: 'cancelled', attempts: 1 })
  clock.advance(500)
  await calm()
  expect(attempts()).toBe(1)
  expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  expect(deadline.reason).toBeUndefined()
})

test.each(aborts)('%s during an attempt settles at once as cancelled', async (_, abort) => {
  const controller = new AbortController()
  const { signal } = controller
  let attempts = 0
  const failed = failureOf(
    retry(
      () => {
        attempts += 1
        return hang()
      },
      { signal, budget: null },
    ),
  )
  await calm()
  abort(controller)
  const error = await failed
  expect(error).toMatchObject({ code: 'CANCELLED' })
  expect(error instanceof Error && error.cause).toBe(signal.reason)
  expect(attempts).toBe(1)
})

test('an abort says why it came, and what had failed before', async () => {
  const controller = new AbortController()
  const { failed } = await waiting({ signal: controller.signal })
  controller.abort(new Error('stop', { cause: new Error('the user') }))
  expect(told(await failed)).toEqual(['the work was cancelled', 'stop', 'the user', 'ECONNRESET'])
})

test("a reason of ours stays what it is, and nobody else's is touched", async () => {
  const reason = new ClientClosedError('the client left', { budget: 1_000, elapsed: 0 })
  const { failed, deadline } = await waiting()
  deadline.cancel(reason)
  const error = await failed
  expect(error).toBeInstanceOf(ClientClosedError)
  expect(error).toMatchObject({
    code: 'CLIENT_CLOSED',
    outcome: 'client_closed',
    status: 499,
    budget: 1_000,
    elapsed: 0,
  })
  expect(error).toMatchObject({ message: 'the client left', cause: reset })
  expect(deadline.reason).toBe(reason)
  expect(reason.cause).toBeUndefined()
})

test('under a signal that has aborted nothing is begun', async () => {
  let attempts = 0
  const signal = AbortSignal.abort(new ShutdownError('bye'))
  const error = await failureOf(retry(() => (attempts += 1), { signal }))
  expect(error).toBe(signal.reason)
  expect(retryEndOf(error)).toEqual({ stop: 'cancelled', attempts: 0 })
  expect(attempts).toBe(0)
})

test('a process that shuts down ends the wait', async () => {
  const controller = new AbortController()
  const { failed } = await waiting({ signal: controller.signal })
  controller.abort(new ShutdownError('bye'))
  expect(await failed).toMatchObject({ code: 'SHUTTING_DOWN', cause: reset })
})

test('a deadline that passes between two attempts is always DeadlineExceeded', async () => {
  const { clock, failed, attempts } = await waiting()
  clock.block(2_000)
  clock.advance(0)
  const error = await failed
  expect(error).toMatchObject({ code: 'DEADLINE_EXCEEDED', cause: reset })
  expect(retryEndOf(error)).toEqual({ stop: 'no_time', attempts: 1 })
  expect(attempts()).toBe(1)
})

test('a deadline that passes in the second attempt is DeadlineExceeded, with what the first failed of', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(1_000, { clock })
  let attempts = 0
  const failed = failureOf(
    retry(
      () => {
        attempts += 1
        if (attempts === 1) throw reset
        return hang()
      },
      { clock, deadline, random: () => 0, budget: null },
    ),
  )
  await calm()
  clock.advance(1_000)
  expect(await failed).toMatchObject({ code: 'DEADLINE_EXCEEDED', cause: reset })
  expect(attempts).toBe(2)
})

test('an attempt that begins too late for its floor, since the process was busy, is not begun', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(1_000, { clock })
  let attempts = 0
  const work = (): never => {
    attempts += 1
    throw reset
  }
  const options = { clock, deadline, floor: 300, random: () => 1, budget: null, backoff: { initial: 100 } }
  const failed = failureOf(retry(work, options))
  await calm()
  clock.block(800)
  clock.advance(0)
  const error = await failed
  expect(error).toMatchObject({ code: 'BUDGET_TOO_SMALL', remaining: 200, cause: reset })
  expect(told(error)[0]).toBe('another attempt at retry needs 300 ms, 200 ms of 1000 ms are left')
  expect(retryEndOf(error)).toEqual({ stop: 'no_time', attempts: 1 })
  expect(attempts).toBe(1)
})

test('a call that is over holds nothing: neither a timer nor a listener on the signals it was given', async () => {
  const controller = new AbortController()
  const clock = new ManualClock()
  const deadline = Deadline.after(60_000, { clock, signal: controller.signal })
  const own = new AbortController()
  const before = getEventListeners(deadline.signal, 'abort').length
  for (let call = 0; call < 50; call += 1) {
    let attempts = 0
    const work = (): string => {
      attempts += 1
      if (attempts < 3) throw reset
      return 'done'
    }
    const options = { clock, deadline, signal: own.signal, random: () => 0, budget: null }
    expect(await retry(work, options)).toBe('done')
  }
  expect(getEventListeners(deadline.signal, 'abort')).toHaveLength(before)
  expect(getEventListeners(own.signal, 'abort')).toHaveLength(0)
  // the deadline's own
  expect(clock.pendingTimers).toBeLessThanOrEqual(1)
})

test('a call that is cut off with the operation around it is no late work', async () => {
  const late: WorkLate[] = []
  const unsubscribe = workLate.subscribe((event) => late.push(event))
  const clock = new ManualClock()
  const deadline = Deadline.after(1_000, { clock })
  const options = { clock, random: () => 1, budget: null, backoff: { initial: 100 } }
  const failed = failureOf(
    operation('answer', { deadline }, () =>
      retry(() => {
        throw reset
      }, options),
    ),
  )
  await calm()
  deadline.cancel('stop')
  expect(await failed).toBe(deadline.reason)
  await calm()
  expect(late).toEqual([])
  unsubscribe()
})

test('fifty users who leave are no failures: nothing is retried, and each call tells so once', async () => {
  const decisions = await decisionsOf(async () => {
    for (let user = 0; user < 50; user += 1) {
      const [, abort] = aborts[user % aborts.length] ?? aborts[0] ?? []
      const controller = new AbortController()
      const deadline = Deadline.after(5_000, { signal: controller.signal })
      let attempts = 0
      const failed = failureOf(
        retry(
          ({ signal }) => {
            attempts += 1
            // as fetch does: it rejects with whatever the signal aborts with
            return new Promise((_, reject) => {
              signal.addEventListener('abort', () => reject(signal.reason as Error))
            })
          },
          { deadline },
        ),
      )
      await calm()
      abort?.(controller)
      expect(await failed).toMatchObject({ outcome: 'cancelled' })
      expect(attempts).toBe(1)
      expect(deadline.ledger.entries).toMatchObject([{ outcome: 'cancelled' }])
    }
  })
  expect(decisions).toHaveLength(50)
  expect(new Set(decisions.map(({ stop }) => stop))).toEqual(new Set(['cancelled']))
})

test.each(aborts)(
  '%s of a signal that only the work knows is no failure that passes either',
  async (_, abort) => {
    const controller = new AbortController()
    let attempts = 0
    const failed = failureOf(
      retry(() => {
        attempts += 1
        abort(controller)
        throw controller.signal.reason
      }),
    )
    expect(await failed).toBe(controller.signal.reason)
    expect(attempts).toBe(1)
  },
)
