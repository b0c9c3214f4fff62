import {
  BudgetTooSmallError,
  CancelledError,
  CircuitOpenError,
  ClientClosedError,
  ConnectTimeoutError,
  Deadline,
  DeadlineExceededError,
  operation,
  OperationTimeoutError,
  OverloadedError,
  ShutdownError,
  StreamStalledError,
  UpstreamError,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { expect, test, vi } from 'vitest'
import { breaker, type BreakerCallOptions, type BreakerOptions } from '../src/index.ts'
import { fail, failTimes, ok } from './support/breaker-calls.ts'

/** Whether a single call that ends so opens a circuit that one failure opens. */
async function opens(
  work: (scope: { signal: AbortSignal }) => unknown,
  options: BreakerOptions = {},
  call: BreakerCallOptions = {},
): Promise<boolean> {
  const search = breaker('search', { failures: 1, ...options })
  await search.run(work, call).catch(() => undefined)
  return search.state === 'open'
}

function throwing(error: unknown): () => never {
  return () => {
    throw error
  }
}

function never(): Promise<never> {
  return new Promise(() => undefined)
}

/** A breaker that has seen calls take so many milliseconds, and the clock they took them by. */
async function taught(spent: readonly number[]) {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 1, clock })
  for (const milliseconds of spent) await search.run(() => clock.advance(milliseconds))
  /** Lets a call run out of the time it is granted. */
  const cutOffAfter = async (granted: number): Promise<void> => {
    const call = search.run(never, { deadline: Deadline.after(granted, { clock }) })
    clock.advance(granted)
    await call.catch(() => undefined)
  }
  return { search, cutOffAfter, clock }
}

test.each([
  ['an error that says nothing else', new Error('down')],
  ['a thrown string', 'down'],
  ['no connection in time', new ConnectTimeoutError('no connection')],
  ['a stream that stalled', new StreamStalledError('silence')],
  ['a failed call', new UpstreamError('reset', { cause: new Error('ECONNRESET') })],
  [
    'an abort by nobody we know, as timeouts of other libraries look',
    new DOMException('aborted', 'AbortError'),
  ],
  ['an error with a status of 500', Object.assign(new Error('oops'), { status: 500 })],
  ['an error with a response of 503', Object.assign(new Error('busy'), { response: { status: 503 } })],
])('%s counts as a failure', async (_, error) => {
  expect(await opens(throwing(error))).toBe(true)
})

test.each([
  ['a client that left', new ClientClosedError('gone')],
  ['a cancellation', new CancelledError('stopped')],
  [
    'a client that left, wrapped by a library',
    new Error('aborted', { cause: new ClientClosedError('gone') }),
  ],
  ['work not begun for lack of time', new BudgetTooSmallError('too late')],
  ['work refused by a queue of our own', new OverloadedError('full')],
  ['work refused by another breaker', new CircuitOpenError('open')],
  ['our own shutdown', new ShutdownError('bye')],
  [
    'CANCELLED from a gRPC server',
    Object.assign(new Error('1 CANCELLED'), { code: 1, metadata: { get: () => [] } }),
  ],
  [
    'a peer that says its caller left',
    Object.assign(new Error('499'), { status: 499, headers: { 'x-deadline-outcome': 'client_closed' } }),
  ],
])('%s is neither failure nor success', async (_, error) => {
  expect(await opens(throwing(error))).toBe(false)
  const search = breaker('search', { failures: 2 })
  await failTimes(search, 1)
  await search.run(throwing(error)).catch(() => undefined)
  await failTimes(search, 1)
  expect(search.state).toBe('open')
})

test.each([
  ['an error with a status of 404', Object.assign(new Error('none'), { status: 404 })],
  ['an error with a statusCode of 429', Object.assign(new Error('slow down'), { statusCode: 429 })],
  [
    'an error with a response of 400',
    Object.assign(new Error('bad'), { response: { status: 400, headers: {} } }),
  ],
  [
    'a failed call whose cause carries a 401',
    new UpstreamError('no', { cause: Object.assign(new Error('no'), { response: { statusCode: 401 } }) }),
  ],
])('%s shows that what was called is well', async (_, error) => {
  expect(await opens(throwing(error))).toBe(false)
  const search = breaker('search', { failures: 2 })
  for (const next of [fail, throwing(error), fail]) await search.run(next).catch(() => undefined)
  expect(search.state).toBe('closed')
})

test('a response counts by its status, though fetch does not throw it', async () => {
  expect(await opens(() => new Response('', { status: 500 }))).toBe(true)
  expect(await opens(() => new Response('', { status: 404 }))).toBe(false)
  expect(await opens(() => ({ statusCode: 503, headers: {}, body: null }))).toBe(true)
})

test('a result that merely has a status is no response', async () => {
  expect(await opens(() => ({ status: 500, title: 'an order over 500 pieces' }))).toBe(false)
})

test.each([
  [1, false],
  [2, true],
  [3, false],
  [5, false],
  [8, false],
  [13, true],
  [14, true],
  [16, false],
])('an error with the gRPC status %i counts as a failure: %s', async (code, isFailure) => {
  const error = Object.assign(new Error('a gRPC error'), { code, details: '', metadata: { get: () => [] } })
  expect(await opens(throwing(new UpstreamError('failed', { cause: error })))).toBe(isFailure)
})

test('DEADLINE_EXCEEDED from a gRPC server is judged by the time it was given', async () => {
  const error = Object.assign(new Error('too late'), { code: 4, metadata: { get: () => [] } })
  expect(await opens(throwing(error), { patience: 200 }, { timeout: 100 })).toBe(false)
  expect(await opens(throwing(error), { patience: 200 }, { timeout: 300 })).toBe(true)
})

test('retries that end for want of time count by what failed', async () => {
  const noTime = (cause: unknown) =>
    throwing(new BudgetTooSmallError('another attempt needs more', { cause }))
  expect(await opens(noTime(new Error('down')))).toBe(true)
  expect(await opens(noTime(Object.assign(new Error('busy'), { status: 503 })))).toBe(true)
  expect(await opens(noTime(Object.assign(new Error('slow down'), { status: 429 })))).toBe(false)
  expect(await opens(noTime(new OverloadedError('full')))).toBe(false)
  const short = new OperationTimeoutError('too slow', { budget: 50 })
  expect(await opens(noTime(short), { patience: 100 })).toBe(false)
  expect(await opens(noTime(short), { patience: 50 })).toBe(true)
})

test('failureStatus makes 429 a failure, or 501 none', async () => {
  const failureStatus = (status: number): boolean => status === 429 || (status >= 500 && status !== 501)
  expect(await opens(() => new Response('', { status: 429 }), { failureStatus })).toBe(true)
  expect(await opens(() => new Response('', { status: 501 }), { failureStatus })).toBe(false)
  expect(await opens(throwing(Object.assign(new Error('x'), { status: 429 })), { failureStatus })).toBe(true)
})

test('isFailure decides where it returns a boolean, and leaves the rest to the rules', async () => {
  const isFailure: BreakerOptions['isFailure'] = (end) => {
    if (end.kind === 'result') return end.result === 'empty'
    return end.error instanceof RangeError ? false : undefined
  }
  expect(await opens(() => 'empty', { isFailure })).toBe(true)
  expect(await opens(throwing(new RangeError('no such page')), { isFailure })).toBe(false)
  expect(await opens(fail, { isFailure })).toBe(true)
})

test('isFailure is not asked about a call that was given up', async () => {
  expect(await opens(throwing(new ClientClosedError('gone')), { isFailure: () => true })).toBe(false)
})

test('rules that throw cost neither the result nor the slot of a probe, and are warned about', async () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  const clock = new ManualClock()
  const isFailure = (): boolean => {
    throw new Error('a bug')
  }
  const search = breaker('search', { failures: 1, halfOpenAfter: '3s', isFailure, clock })
  await expect(search.run(fail)).rejects.toThrow('down')
  expect(search.state).toBe('open')
  clock.advance(3_000)
  await expect(search.run(ok)).resolves.toBe('ok')
  expect(search.state).toBe('closed')
  expect(warn).toHaveBeenCalledWith(expect.stringContaining('a bug'), 'TimeBudgetWarning')
  warn.mockRestore()
})

test('what only times out opens the circuit, also if it never once answered', async () => {
  const { search, cutOffAfter } = await taught([])
  await cutOffAfter(800)
  expect(search.state).toBe('open')
})

test('the timeout of the call itself counts like the deadline', async () => {
  const { search, clock } = await taught([])
  const call = search.run(never, { timeout: 300, deadline: Deadline.after(9_000, { clock }) })
  clock.advance(300)
  await expect(call).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
  expect(search.state).toBe('open')
})

test('a caller with 5 ms left opens nothing, known or unknown how long calls take', async () => {
  for (const known of [[], Array.from({ length: 20 }, () => 40)]) {
    const { search, cutOffAfter } = await taught(known)
    await cutOffAfter(5)
    expect(search.state).toBe('closed')
  }
})

test('a timeout counts once the call had as long as nine of ten lately successful ones took', async () => {
  const { search, cutOffAfter } = await taught([10, 20, 30, 40, 50, 60, 70, 80, 90, 5_000])
  await cutOffAfter(89)
  expect(search.state).toBe('closed')
  await cutOffAfter(90)
  expect(search.state).toBe('open')
})

test('what calls took long ago is forgotten', async () => {
  const { search, cutOffAfter } = await taught([...Array(64).fill(9_000), ...Array(64).fill(50)])
  await cutOffAfter(60)
  expect(search.state).toBe('open')
})

test('answers that are failures teach no patience, however quick they are', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 65, clock })
  for (let i = 0; i < 20; i += 1) await search.run(() => clock.advance(500))
  for (let i = 0; i < 64; i += 1) await search.run(() => new Response('', { status: 503 }))
  const call = search.run(never, { deadline: Deadline.after(100, { clock }) })
  clock.advance(100)
  await call.catch(() => undefined)
  expect(search.state).toBe('closed')
})

test('patience can be fixed, and is then not learned', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 1, patience: '2s', clock })
  for (let i = 0; i < 64; i += 1) await search.run(() => clock.advance(10))
  const call = search.run(never, { deadline: Deadline.after(1_999, { clock }) })
  clock.advance(1_999)
  await call.catch(() => undefined)
  expect(search.state).toBe('closed')
})

test('an operation inside the call that runs into its own, shorter timeout is judged by that one', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 1, patience: 500, clock })
  const attempt = async (timeout: number): Promise<void> => {
    const deadline = Deadline.after('1m', { clock })
    const call = search.run(({ deadline: inner }) => operation('page', { timeout, deadline: inner }, never), {
      deadline,
    })
    await Promise.resolve()
    clock.advance(timeout)
    await call.catch(() => undefined)
  }
  await attempt(100)
  expect(search.state).toBe('closed')
  await attempt(500)
  expect(search.state).toBe('open')
})

test('a timeout that does not say how long it was is judged by what the call had been granted', async () => {
  const unknown = throwing(new DeadlineExceededError('too late'))
  expect(await opens(unknown, { patience: 500 }, { timeout: 100 })).toBe(false)
  expect(await opens(unknown, { patience: 500 }, { timeout: 1_000 })).toBe(true)
})

test('a peer that answers for lack of time is judged by the time it was given', async () => {
  const answering = (outcome: string) => () =>
    new Response('', { status: 504, headers: { 'x-deadline-outcome': outcome } })
  const clock = new ManualClock()
  for (const outcome of ['deadline_exceeded', 'operation_timeout', 'short_circuited', 'shed']) {
    const options = { patience: '1s', clock }
    expect(await opens(answering(outcome), options, { deadline: Deadline.after(50, { clock }) })).toBe(false)
    expect(await opens(answering(outcome), options, { deadline: Deadline.after(2_000, { clock }) })).toBe(
      true,
    )
  }
  expect(await opens(answering('upstream_error'), {}, { deadline: Deadline.after(50) })).toBe(true)
  expect(await opens(answering('cancelled'))).toBe(false)
})

test('the same goes for an answer that a client throws', async () => {
  const answer = { status: 504, headers: { 'x-deadline-outcome': 'deadline_exceeded' } }
  const error = Object.assign(new Error('Request failed with status code 504'), { response: answer })
  expect(await opens(throwing(error), { patience: '1s' }, { timeout: 50 })).toBe(false)
  expect(await opens(throwing(error), { patience: '1s' })).toBe(true)
})

test('results and errors of any odd shape are judged without harm', async () => {
  const biting = new Error('a chain that bites its tail')
  biting.cause = biting
  expect(await opens(throwing(biting))).toBe(true)
  const bitingToo = new BudgetTooSmallError('no time')
  bitingToo.cause = bitingToo
  expect(await opens(throwing(bitingToo))).toBe(false)
  expect(await opens(throwing(null))).toBe(true)
  expect(await opens(throwing(undefined))).toBe(true)
  expect(await opens(throwing(new DeadlineExceededError('of unknown length')))).toBe(true)
  expect(await opens(() => ({ status: '500', headers: {} }))).toBe(false)
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  const hostile = new Proxy({}, { get: (_, key) => (key === 'then' ? undefined : fail()) })
  const search = breaker('search', { failures: 1 })
  await expect(search.run(() => hostile)).resolves.toBe(hostile)
  expect(search.state).toBe('closed')
  await expect(search.run(throwing(hostile))).rejects.toBe(hostile)
  expect(search.state).toBe('open')
  expect(warn).not.toHaveBeenCalled()
  warn.mockRestore()
})
