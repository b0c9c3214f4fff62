import { getEventListeners } from 'node:events'
import {
  type BreakerMoved,
  breakerMoved,
  CircuitOpenError,
  Deadline,
  runWithDeadline,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { expect, test } from 'vitest'
import { breaker, breakers } from '../src/index.ts'
import { deferred, fail, failTimes, ok } from './support/breaker-calls.ts'

test('a circuit opens after five failures in a row, and then calls fail at once without being made', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { clock })
  await failTimes(search, 4)
  expect(search.state).toBe('closed')
  await failTimes(search, 1)
  expect(search.state).toBe('open')
  let called = false
  const refused = await search
    .run(() => {
      called = true
    })
    .catch((error: unknown) => error)
  expect(called).toBe(false)
  expect(refused).toBeInstanceOf(CircuitOpenError)
  expect(refused).toMatchObject({
    operation: 'search',
    status: 503,
    outcome: 'circuit_open',
    retryAfter: 10_000,
  })
})

test('a success in between lets the count of failures begin anew', async () => {
  const search = breaker('search', { failures: 2 })
  for (let i = 0; i < 5; i += 1) {
    await failTimes(search, 1)
    await search.run(ok)
  }
  expect(search.state).toBe('closed')
})

test('with a ratio, a circuit opens on the share of failures in the window, whatever their order', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { ratio: 0.5, minimum: 10, window: '10s', clock })
  for (let i = 0; i < 5; i += 1) await search.run(ok)
  await failTimes(search, 4)
  expect(search.state).toBe('closed')
  await failTimes(search, 1)
  expect(search.state).toBe('open')
})

test('with a ratio, fewer calls than the minimum say nothing, and old calls drop out of the window', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { ratio: 0.5, minimum: 10, window: '10s', clock })
  await failTimes(search, 9)
  clock.advance(10_000)
  await failTimes(search, 9)
  expect(search.state).toBe('closed')
  clock.advance(5_000)
  await failTimes(search, 1)
  expect(search.state).toBe('open')
})

test('a ratio and failures in a row may both open a circuit', async () => {
  const search = breaker('search', { ratio: 0.5, failures: 3 })
  await failTimes(search, 3)
  expect(search.state).toBe('open')
})

test('after the pause one call probes, and its success closes the circuit for everybody', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 1, halfOpenAfter: '3s', clock })
  await failTimes(search, 1)
  clock.advance(2_999)
  await expect(search.run(ok)).rejects.toMatchObject({ code: 'CIRCUIT_OPEN', retryAfter: 1 })
  clock.advance(1)
  expect(search.state).toBe('half_open')
  await expect(search.run(ok)).resolves.toBe('ok')
  expect(search.state).toBe('closed')
  await expect(search.run(ok)).resolves.toBe('ok')
})

test('a probe that fails opens the circuit for another whole pause', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 3, halfOpenAfter: '3s', clock })
  await failTimes(search, 3)
  clock.advance(3_000)
  await failTimes(search, 1)
  expect(search.state).toBe('open')
  expect(search.retryAfter).toBe(3_000)
})

test('a circuit that has closed counts from nothing', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 2, ratio: 0.5, minimum: 2, halfOpenAfter: '3s', clock })
  await failTimes(search, 2)
  clock.advance(3_000)
  await search.run(ok)
  await failTimes(search, 1)
  expect(search.state).toBe('closed')
})

test('law 5: a wall clock that is set back or forth an hour changes nothing', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 1, halfOpenAfter: '3s', clock })
  await failTimes(search, 1)
  clock.shiftEpoch(3_600_000)
  await expect(search.run(ok)).rejects.toMatchObject({ retryAfter: 3_000 })
  clock.shiftEpoch(-7_200_000)
  clock.advance(3_000)
  await expect(search.run(ok)).resolves.toBe('ok')
})

test('calls from before the opening neither prolong it, nor end it, nor judge the probe', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 2, halfOpenAfter: '3s', clock })
  const [old1, old2, old3] = [deferred(), deferred(), deferred()]
  const running = [old1, old2, old3].map(({ promise }) => search.run(() => promise).catch(() => undefined))
  await failTimes(search, 2)

  clock.advance(1_000)
  old1.reject(new Error('late'))
  await running[0]
  expect(search.retryAfter).toBe(2_000)

  clock.advance(2_000)
  const probe = deferred()
  const probing = search.run(() => probe.promise)
  old2.resolve()
  await running[1]
  expect(search.state).toBe('half_open')
  old3.reject(new Error('late'))
  await running[2]
  expect(search.state).toBe('half_open')

  probe.resolve()
  await probing
  expect(search.state).toBe('closed')
})

test('each move of a circuit is published', async () => {
  const moves: BreakerMoved[] = []
  const unsubscribe = breakerMoved.subscribe((move) => moves.push(move))
  const clock = new ManualClock()
  const search = breaker('search', { failures: 1, halfOpenAfter: '3s', clock })
  await failTimes(search, 1)
  clock.advance(3_000)
  await search.run(ok)
  unsubscribe()
  expect(moves).toEqual([
    { breaker: 'search', from: 'closed', to: 'open' },
    { breaker: 'search', from: 'open', to: 'half_open' },
    { breaker: 'search', from: 'half_open', to: 'closed' },
  ])
})

test('a refused call stands in the ledger with its outcome, under its own name', async () => {
  const search = breaker('search', { failures: 1 })
  const deadline = Deadline.after('5s')
  await runWithDeadline(deadline, async () => {
    await search.run(fail).catch(() => undefined)
    await search.run(ok, { operation: 'second look' }).catch(() => undefined)
  })
  expect(deadline.ledger.entries.map(({ name, outcome }) => [name, outcome])).toEqual([
    ['search', 'error'],
    ['second look', 'circuit_open'],
  ])
  deadline.settle()
})

test('a learned floor is neither asked about nor taught by calls that an open circuit refuses', async () => {
  const search = breaker('search', { failures: 1 })
  await failTimes(search, 1)
  const seen: string[] = []
  const floor = { current: () => seen.push('asked'), record: () => seen.push('taught') }
  const deadline = Deadline.after('5s')
  await expect(search.run(ok, { deadline, floor })).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
  expect(seen).toEqual([])
})

test('a call whose time is up is told so, rather than of the open circuit', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 1, clock })
  await failTimes(search, 1)
  const deadline = Deadline.after(100, { clock })
  clock.advance(100)
  await expect(search.run(ok, { deadline })).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
})

test('the time of one call that ran out aborts no other, and leaves no mark on the next', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { clock })
  const other = deferred()
  let otherSignal: AbortSignal | undefined
  const short = search.run(() => new Promise(() => undefined), {
    timeout: 100,
    deadline: Deadline.after(9_000, { clock }),
  })
  const long = search.run(
    ({ signal }) => {
      otherSignal = signal
      return other.promise
    },
    { timeout: 5_000, deadline: Deadline.after(9_000, { clock }) },
  )
  clock.advance(100)
  await expect(short).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' })
  expect(otherSignal?.aborted).toBe(false)
  other.resolve()
  await expect(long).resolves.toBeUndefined()
  await expect(search.run(({ signal }) => signal.aborted)).resolves.toBe(false)
})

test('law 4: calls that are over leave no timer, and no listener on the signal they were given', async () => {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 3, halfOpenAfter: '3s', clock })
  const deadline = Deadline.after('1m', { clock })
  const { signal } = new AbortController()
  for (let i = 0; i < 10; i += 1)
    await search.run(i < 5 ? fail : ok, { deadline, signal }).catch(() => undefined)
  clock.advance(3_000)
  await search.run(ok, { deadline, signal })
  deadline.settle()
  expect(getEventListeners(signal, 'abort')).toEqual([])
  clock.advance(60_000)
  expect(clock.pendingTimers).toBe(0)
})

test('a set of breakers has one for each key, that fails by itself', async () => {
  const models = breakers({ failures: 1 })
  await failTimes(models.for('large'), 1)
  expect(models.for('large').state).toBe('open')
  expect(models.for('small').state).toBe('closed')
  expect(models.for('small').name).toBe('small')
})

test('a set of breakers is bounded; the one unused for longest goes', async () => {
  const models = breakers({ failures: 1, maxKeys: 2 })
  await failTimes(models.for('a'), 1)
  models.for('b')
  models.for('a')
  for (let i = 0; i < 1_000; i += 1) {
    models.for(`stranger ${i}`)
    models.for('a')
  }
  expect(models.size).toBe(2)
  expect(models.for('a').state).toBe('open')
})

test.each([
  [{ failures: 0 }, 'failures'],
  [{ failures: 1.5 }, 'failures'],
  [{ ratio: 0 }, 'ratio'],
  [{ ratio: 50 }, 'ratio'],
  [{ minimum: -1 }, 'minimum'],
  [{ probes: 0 }, 'probes'],
  [{ window: 0 }, 'window'],
  [{ window: Infinity }, 'window'],
  [{ halfOpenAfter: 'soon' }, 'halfOpenAfter'],
  [{ halfOpenAfter: 0 }, 'halfOpenAfter'],
  [{ probeTimeout: -1 }, 'probeTimeout'],
  [{ patience: Number.NaN }, 'patience'],
])('law 6: %j is refused by a TypeError that names the option', (options, name) => {
  expect(() => breaker('search', options)).toThrow(TypeError)
  expect(() => breaker('search', options)).toThrow(name)
})

test('options that do not exist, or are no functions where they should be, are refused by name', () => {
  expect(() => breaker('search', JSON.parse('{"threshold":3}'))).toThrow('threshold: no such option')
  expect(() => breaker('search', JSON.parse('{"isFailure":true}'))).toThrow('isFailure: expected a function')
  expect(() => breakers({ maxKeys: 0 })).toThrow('maxKeys')
  expect(() => breaker('')).toThrow('name: expected a text')
  expect(() => breakers().for(JSON.parse('7'))).toThrow('key: expected a text')
})
