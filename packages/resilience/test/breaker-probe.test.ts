import { Deadline, type TimeBudgetError } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { expect, test } from 'vitest'
import { type Breaker, breaker, type BreakerOptions } from '../src/index.ts'
import { deferred, fail, failTimes, ok } from './support/breaker-calls.ts'

/** A breaker whose pause is over. */
async function halfOpen(options: BreakerOptions = {}): Promise<{ clock: ManualClock; search: Breaker }> {
  const clock = new ManualClock()
  const search = breaker('search', { failures: 1, halfOpenAfter: '3s', clock, ...options })
  await failTimes(search, 1)
  clock.advance(3_000)
  return { clock, search }
}

function never(): Promise<never> {
  return new Promise(() => undefined)
}

test('while one call probes, everybody else is refused at once and waits for nothing', async () => {
  const { clock, search } = await halfOpen()
  const probe = deferred()
  const probing = search.run(() => probe.promise)
  clock.advance(1_000)
  await expect(search.run(ok)).rejects.toMatchObject({ code: 'CIRCUIT_OPEN', retryAfter: 2_000 })
  probe.resolve()
  await probing
  await expect(search.run(ok)).resolves.toBe('ok')
})

test('Retry-After beside a probe is the time until the probe makes room at the latest', async () => {
  const { search, clock } = await halfOpen({ patience: '1s' })
  const probing = search.run(never, { deadline: Deadline.after(700, { clock }) }).catch(() => undefined)
  await expect(search.run(ok)).rejects.toMatchObject({ retryAfter: 700 })
  clock.advance(700)
  await probing
  expect(search.retryAfter).toBe(0)
})

test.each<[string, (controller: AbortController) => void]>([
  ['abort()', (controller) => controller.abort()],
  [`abort('stop')`, (controller) => controller.abort('stop')],
  ['abort(a DOMException)', (controller) => controller.abort(new DOMException('gone', 'AbortError'))],
  ['abort(an Error)', (controller) => controller.abort(new Error('down'))],
])(
  'law 10: a probe given up by %s neither closes the circuit nor keeps the next one from probing',
  async (_, give) => {
    const { search } = await halfOpen()
    const controller = new AbortController()
    const probing = search.run(
      ({ signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      { signal: controller.signal },
    )
    give(controller)
    await expect(probing).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(search.state).toBe('half_open')
    // what is called is still down, so the next probe finds out
    await expect(search.run(fail)).rejects.toThrow('down')
    expect(search.state).toBe('open')
  },
)

test('a probe that hangs makes room when its deadline passes, though its work goes on', async () => {
  const { clock, search } = await halfOpen({ patience: '1m' })
  const probing = search.run(never, { deadline: Deadline.after(500, { clock }) })
  clock.advance(500)
  await expect(probing).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  expect(search.state).toBe('half_open')
  await expect(search.run(ok)).resolves.toBe('ok')
})

test('a probe that hangs under no deadline makes room after probeTimeout', async () => {
  const { clock, search } = await halfOpen({ probeTimeout: '2s' })
  void search.run(never)
  clock.advance(1_999)
  await expect(search.run(ok)).rejects.toMatchObject({ retryAfter: 1 })
  clock.advance(1)
  await expect(search.run(ok)).resolves.toBe('ok')
  expect(search.state).toBe('closed')
})

test('the probe that takes the room of one that hangs is again the only one', async () => {
  const { clock, search } = await halfOpen({ probeTimeout: '2s' })
  void search.run(never)
  clock.advance(2_500)
  expect(search.retryAfter).toBe(0)
  void search.run(never)
  await expect(search.run(ok)).rejects.toMatchObject({ code: 'CIRCUIT_OPEN', retryAfter: 2_000 })
})

test('a probe with minutes left makes room after probeTimeout as well', async () => {
  const { clock, search } = await halfOpen()
  void search.run(never, { deadline: Deadline.after('5m', { clock }) }).catch(() => undefined)
  clock.advance(3_000)
  await expect(search.run(ok)).resolves.toBe('ok')
})

test('a probe that takes longer than probeTimeout is not cut off, and its success still closes the circuit', async () => {
  const { clock, search } = await halfOpen({ probeTimeout: '2s' })
  const slow = deferred()
  const probing = search.run(() => slow.promise)
  clock.advance(60_000)
  slow.resolve()
  await probing
  expect(search.state).toBe('closed')
})

test('a probe that was refused its start holds no slot', async () => {
  const { clock, search } = await halfOpen()
  const deadline = Deadline.after(50, { clock })
  await expect(search.run(ok, { deadline, floor: 100 })).rejects.toMatchObject({ code: 'BUDGET_TOO_SMALL' })
  await expect(search.run(ok)).resolves.toBe('ok')
})

test('with `probes`, so many try at a time; the first to tell decides for all', async () => {
  const { search } = await halfOpen({ probes: 2 })
  const [first, second] = [deferred(), deferred()]
  const probing = [first, second].map(({ promise }) => search.run(() => promise))
  await expect(search.run(ok)).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
  second.resolve()
  await probing[1]
  expect(search.state).toBe('closed')
  first.reject(new Error('down'))
  await expect(probing[0]).rejects.toThrow('down')
  expect(search.state).toBe('closed')
})

test('a probe from the last outage takes up no room in the next one', async () => {
  const { clock, search } = await halfOpen({ probes: 2, probeTimeout: '1m' })
  void search.run(never)
  await search.run(ok)
  await failTimes(search, 1)
  clock.advance(3_000)
  void search.run(never)
  await expect(search.run(ok)).resolves.toBe('ok')
})

test('a thousand callers who find one probe under way are refused within the same turn', async () => {
  const { search } = await halfOpen()
  void search.run(never)
  const refusals = await Promise.all(
    Array.from({ length: 1_000 }, () => search.run(ok).catch((error: TimeBudgetError) => error.code)),
  )
  expect(new Set(refusals)).toEqual(new Set(['CIRCUIT_OPEN']))
})
