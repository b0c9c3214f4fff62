import { Deadline } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { waitUnder } from '../src/wait.ts'
import { calm, failureOf } from './support/retrying.ts'

test('a wait lasts as long as it should, also where a timer fires early', async () => {
  const clock = new ManualClock()
  const early = {
    now: () => clock.now(),
    epoch: () => clock.epoch(),
    wakeAfter: (delay: number, wake: () => void) => clock.wakeAfter(delay / 2, wake),
  }
  let isOver = false
  const waiting = waitUnder(100, { clock: early }).then(() => (isOver = true))
  clock.advance(99)
  await calm()
  expect(isOver).toBe(false)
  clock.advance(1)
  await waiting
  expect(clock.pendingTimers).toBe(0)
})

test('a wait is over at once when its deadline ends, for its reason, and leaves nothing behind', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(1_000, { clock })
  const waiting = failureOf(waitUnder(500, { deadline, clock }))
  await calm()
  deadline.cancel('stop')
  expect(await waiting).toBe(deadline.reason)
  expect(getEventListeners(deadline.signal, 'abort')).toEqual([])
  // the deadline's own
  expect(clock.pendingTimers).toBe(1)
})

test('a wait that is over leaves no listener on its deadline', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(1_000, { clock })
  const waiting = waitUnder(500, { deadline, clock })
  clock.advance(500)
  await waiting
  expect(getEventListeners(deadline.signal, 'abort')).toEqual([])
})

test('a wait under a deadline that has ended does not begin, be it for no time at all', async () => {
  const deadline = Deadline.after(1_000)
  deadline.cancel('stop')
  expect(await failureOf(waitUnder(0, { deadline }))).toBe(deadline.reason)
  expect(await failureOf(waitUnder(10, { deadline }))).toBe(deadline.reason)
})

test('where the deadline and the wait are over by the time anybody looks, the deadline counts', async () => {
  const clock = new ManualClock()
  const deadline = Deadline.after(600, { clock })
  const waiting = failureOf(waitUnder(500, { deadline, clock }))
  clock.block(700)
  clock.advance(0)
  expect(await waiting).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
})

test('an infinite wait ends with its deadline', async () => {
  const deadline = Deadline.after(20)
  expect(await failureOf(waitUnder(Infinity, { deadline }))).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
})

test('a real wait is never shorter than asked for', async () => {
  for (let round = 0; round < 20; round += 1) {
    const startedAt = performance.now()
    await waitUnder(3.3)
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(3.3)
  }
})
