import { Deadline } from '@timebudget/core'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { breaker, DeadlineQueue, retry } from '../src/index.ts'

function fail(): never {
  throw new Error('looked at')
}

const biting = new Error('its chain bites its tail')
biting.cause = biting

const thrown: readonly (readonly [string, unknown])[] = [
  ['nothing', undefined],
  ['null', null],
  ['a text', 'stop'],
  ['a symbol', Symbol('stop')],
  ['a function', fail],
  ['a frozen error', Object.freeze(new Error('frozen'))],
  ['an object without a prototype', Object.create(null)],
  ['an error that is its own cause', biting],
  ['an error whose cause throws', Object.defineProperty(new Error('x'), 'cause', { get: fail })],
  ['an error whose headers throw', Object.defineProperty(new Error('x'), 'headers', { get: fail })],
  ['a proxy that throws at every look', new Proxy({}, { get: fail, has: fail, ownKeys: fail })],
]

const answers: readonly (readonly [string, unknown])[] = [
  ['headers that throw', Object.defineProperty({ status: 503 }, 'headers', { get: fail })],
  ['headers that throw when they are asked', { status: 503, headers: { get: fail } }],
  ['a body that throws', Object.defineProperty({ status: 503, headers: {} }, 'body', { get: fail })],
  ['nothing that can be read', new Proxy({}, { get: (_, key) => (key === 'then' ? undefined : fail()) })],
]

// Each in a call of its own, under a deadline that would end one that is never told.
const ways: readonly (readonly [string, (work: () => unknown) => Promise<unknown>])[] = [
  ['retry', (work) => retry(work, { deadline: soon(), attempts: 2, backoff: { initial: 1 } })],
  ['a hedged retry', (work) => retry(work, { deadline: soon(), attempts: 2, hedge: { after: 50 } })],
  ['a breaker', (work) => breaker('search').run(work, { deadline: soon() })],
  ['a queue', (work) => new DeadlineQueue({ slots: 1 }).run(work, { deadline: soon() })],
]

function soon(): Deadline {
  return Deadline.after('3s')
}

describe.each(ways)('%s', (_, run) => {
  let warn: ReturnType<typeof vi.spyOn>
  beforeEach(() => {
    warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  })
  afterEach(() => {
    expect(warn).not.toHaveBeenCalled()
    warn.mockRestore()
  })

  test.each(thrown)('throws what its work throws, as it is: %s', async (_, what) => {
    const end = await run(() => Promise.reject(what)).then(
      () => 'answered',
      (error: unknown) => ({ is: Object.is(error, what) }),
    )
    expect(end).toEqual({ is: true })
  })

  test.each(answers)('returns an answer as it is: with %s', async (_, answer) => {
    const end = await run(() => answer)
    expect(Object.is(end, answer)).toBe(true)
  })
})

test('whoever cancels a retry for a reason that cannot be read is told of the cancellation', async () => {
  const controller = new AbortController()
  let attempts = 0
  const work = (): never => {
    attempts += 1
    setImmediate(() => controller.abort(new Proxy({}, { get: fail, has: fail })))
    throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  }
  const call = retry(work, {
    deadline: soon(),
    signal: controller.signal,
    backoff: { initial: '2s' },
    random: () => 1,
  })
  await expect(call).rejects.toMatchObject({ outcome: 'cancelled' })
  expect(attempts).toBe(1)
})
