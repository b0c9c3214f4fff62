import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import {
  BudgetTooSmallError,
  CancelledError,
  CircuitOpenError,
  ClientClosedError,
  ConnectTimeoutError,
  DeadlineExceededError,
  type ErrorDetails,
  findTimeBudgetError,
  FirstTokenTimeoutError,
  isOutcome,
  isTimeBudgetError,
  OperationTimeoutError,
  outcomeOf,
  outcomes,
  OverloadedError,
  ShutdownError,
  StreamStalledError,
  TimeBudgetError,
  TotalTimeoutError,
  UpstreamError,
} from '@timebudget/core'

type Class = new (message: string, details?: ErrorDetails) => TimeBudgetError

const table: readonly (readonly [
  name: string,
  Class: Class,
  code: string,
  outcome: string,
  status: number,
])[] = [
  ['DeadlineExceededError', DeadlineExceededError, 'DEADLINE_EXCEEDED', 'deadline_exceeded', 504],
  ['BudgetTooSmallError', BudgetTooSmallError, 'BUDGET_TOO_SMALL', 'short_circuited', 504],
  ['OperationTimeoutError', OperationTimeoutError, 'OPERATION_TIMEOUT', 'operation_timeout', 504],
  ['ClientClosedError', ClientClosedError, 'CLIENT_CLOSED', 'client_closed', 499],
  ['CancelledError', CancelledError, 'CANCELLED', 'cancelled', 499],
  ['OverloadedError', OverloadedError, 'OVERLOADED', 'shed', 503],
  ['CircuitOpenError', CircuitOpenError, 'CIRCUIT_OPEN', 'circuit_open', 503],
  ['ShutdownError', ShutdownError, 'SHUTTING_DOWN', 'shutdown', 503],
  ['ConnectTimeoutError', ConnectTimeoutError, 'CONNECT_TIMEOUT', 'connect_timeout', 504],
  ['FirstTokenTimeoutError', FirstTokenTimeoutError, 'FIRST_TOKEN_TIMEOUT', 'first_token_timeout', 504],
  ['StreamStalledError', StreamStalledError, 'STREAM_STALLED', 'stream_stalled', 504],
  ['TotalTimeoutError', TotalTimeoutError, 'TOTAL_TIMEOUT', 'total_timeout', 504],
  ['UpstreamError', UpstreamError, 'UPSTREAM_ERROR', 'upstream_error', 502],
]

describe.each(table)('%s', (name, ErrorClass, code, outcome, status) => {
  test('has its code, outcome and status', () => {
    const error = new ErrorClass('it failed')
    expect(error).toBeInstanceOf(TimeBudgetError)
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name, code, outcome, status, statusCode: status, message: 'it failed' })
    expect(String(error)).toBe(`${name}: it failed`)
    expect(isTimeBudgetError(error)).toBe(true)
    expect(outcomeOf(error)).toBe(outcome)
    expect(error.headers).toEqual({ 'x-deadline-outcome': outcome })
  })

  test('keeps what is known of the moment, and knows no cause unless there is one', () => {
    const details = {
      operation: 'generate',
      budget: 3_000,
      elapsed: 2_800,
      remaining: 200,
      retryAfter: 1_001,
    }
    const error = new ErrorClass('it failed', { ...details, cause: null })
    expect(error).toMatchObject(details)
    expect(error.cause).toBeNull()
    expect('cause' in new ErrorClass('it failed', details)).toBe(false)
  })
})

test('every error has an outcome of its own, and the list has three more', () => {
  const ofErrors = table.map(([, , , outcome]) => outcome)
  expect(new Set(ofErrors).size).toBe(table.length)
  expect(new Set(outcomes)).toEqual(new Set(['ok', 'degraded', 'error', ...ofErrors]))
  expect(outcomes.every(isOutcome)).toBe(true)
  for (const other of ['', 'OK', '__proto__', 'constructor', undefined]) expect(isOutcome(other)).toBe(false)
})

test('law 10: a client that left and work that was cancelled have outcomes of their own', () => {
  const failures = table.filter(([, , code]) => code !== 'CLIENT_CLOSED' && code !== 'CANCELLED')
  expect(failures.map(([, , , outcome]) => outcome)).not.toContain('client_closed')
  expect(outcomeOf(new ClientClosedError('gone'))).not.toBe(outcomeOf(new CancelledError('stopped')))
  expect(failures.map(([, , , , status]) => status)).not.toContain(499)
})

test.each([
  [0, '1'],
  [1, '1'],
  [1_000, '1'],
  [1_001, '2'],
  [90_000, '90'],
  [Infinity, undefined],
  [Number.NaN, undefined],
])('of a retry after %d ms Retry-After says %s', (retryAfter, seconds) => {
  expect(new OverloadedError('full', { retryAfter }).headers['retry-after']).toBe(seconds)
})

describe('our error is found', () => {
  const ours = new DeadlineExceededError('too late')

  test('as the value itself, or as deep in its causes as clients bury it', () => {
    let value: unknown = ours
    for (let depth = 0; depth < 9; depth += 1) {
      value = new Error(`wrapped ${depth}`, { cause: value })
      expect(findTimeBudgetError(value)).toBe(ours)
      expect(outcomeOf(value)).toBe('deadline_exceeded')
    }
    expect(findTimeBudgetError(new DOMException('aborted', { name: 'AbortError', cause: ours }))).toBe(ours)
  })

  test('under an error from another realm, as a test runner with globals of its own has it', () => {
    const foreign: Error = runInNewContext('new Error("fetch failed")')
    foreign.cause = ours
    expect(foreign).not.toBeInstanceOf(Error)
    expect(findTimeBudgetError(foreign)).toBe(ours)
  })

  test('the outermost first', () => {
    const outer = new UpstreamError('search failed', { cause: ours })
    expect(findTimeBudgetError(new Error('x', { cause: outer }))).toBe(outer)
  })

  test('nowhere in a chain that bites its tail', () => {
    const one = new Error('one')
    one.cause = new Error('two', { cause: one })
    expect(findTimeBudgetError(one)).toBeUndefined()
    expect(outcomeOf(one)).toBe('error')
  })

  test.each([
    ['a cause that throws when it is read', { get: (): never => fail() }],
    ['an error behind a proxy that throws', { has: (): never => fail() }],
  ])('nowhere, and without a throw, in %s', (_, handler: ProxyHandler<Error>) => {
    const hostile = new Proxy(new Error('x', { cause: ours }), handler)
    expect(isTimeBudgetError(hostile)).toBe(false)
    expect(findTimeBudgetError(hostile)).toBeUndefined()
    expect(findTimeBudgetError(new Error('outer', { cause: hostile }))).toBeUndefined()
    expect(outcomeOf(hostile)).toBe('error')
  })

  test.each([undefined, null, 'stop', 3, {}, { code: 'DEADLINE_EXCEEDED' }, () => ours, new Error('x')])(
    'nowhere in %j',
    (value) => {
      expect(isTimeBudgetError(value)).toBe(false)
      expect(findTimeBudgetError(value)).toBeUndefined()
      expect(outcomeOf(value)).toBe('error')
    },
  )
})

function fail(): never {
  throw new Error('looked at')
}
