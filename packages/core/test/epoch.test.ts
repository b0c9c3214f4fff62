import { describe, expect, test } from 'vitest'
import { Deadline, DeadlineExceededError } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

const hour = 3_600_000
const day = 24 * hour

describe('a deadline at a moment', () => {
  test('is as far away as the wall clock says when it is made', () => {
    const clock = new ManualClock()
    expect(Deadline.at(clock.epoch() + 1_500, { clock }).remaining()).toBe(1_500)
    expect(Deadline.at(new Date(clock.epoch() + 1_500), { clock }).budget).toBe(1_500)
  })

  test('that has passed has ended', () => {
    const clock = new ManualClock()
    const deadline = Deadline.at(new Date(clock.epoch() - hour), { clock })
    expect(deadline).toMatchObject({ budget: 0, expired: true })
    expect(deadline.reason).toBeInstanceOf(DeadlineExceededError)
    expect(deadline.signal.aborted).toBe(true)
    expect(deadline.expiresAt).toBe(clock.epoch() - hour)
  })

  test.each([Number.NaN, new Date('soon'), undefined, null, '5000', '2026-01-01', true, {}, 5n])(
    'law 6: of %s is refused by name',
    (moment) => {
      expect(() => Deadline.at(moment as number)).toThrow(TypeError)
      expect(() => Deadline.at(moment as number)).toThrow(/^epochMs: /)
    },
  )

  test('says on the wire the very value it was made from', () => {
    const clock = new ManualClock()
    const epochMs = clock.epoch() + 1_500
    const deadline = Deadline.at(epochMs, { clock })
    clock.advance(700)
    expect(deadline.expiresAt).toBe(epochMs)
    expect(deadline.child({}).expiresAt).toBe(epochMs)
    expect(deadline.child({ timeout: 100 }).expiresAt).toBe(epochMs - 700)
  })

  test('at Infinity never ends', () => {
    const deadline = Deadline.at(Infinity, { clock: new ManualClock() })
    expect(deadline.remaining()).toBe(Infinity)
    expect(deadline.expiresAt).toBe(Infinity)
  })
})

describe('law 5: a wall clock that is set', () => {
  test.each([-hour, hour, -365 * day])('by %d ms ends no deadline early or late', (shift) => {
    const clock = new ManualClock()
    const deadline = Deadline.after('1s', { clock })
    const fromWire = Deadline.at(clock.epoch() + 1_000, { clock })
    const signals = [deadline.signal, fromWire.signal]
    clock.shiftEpoch(shift)
    clock.advance(999)
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false])
    expect(fromWire.remaining()).toBe(1)
    clock.advance(1)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
  })

  test('changes what is sent: the moment as our own clock has it now', () => {
    const clock = new ManualClock()
    const deadline = Deadline.at(clock.epoch() + 1_000, { clock })
    for (const shift of [hour, -2 * hour]) {
      clock.shiftEpoch(shift)
      expect(deadline.expiresAt).toBe(clock.epoch() + 1_000)
    }
  })

  test('by less than the tolerance forth changes nothing of what is sent, and back never leaves it too late', () => {
    const clock = new ManualClock()
    const received = clock.epoch() + 1_000
    const deadline = Deadline.at(received, { clock })
    clock.shiftEpoch(50)
    expect(deadline.expiresAt).toBe(received)
    clock.shiftEpoch(1)
    expect(deadline.expiresAt).toBe(received + 51)
    clock.shiftEpoch(-2)
    expect(deadline.expiresAt).toBe(received + 49)
  })

  test('what is sent stays the same from one call to the next, and never later than what is held', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after(1_000.75, { clock })
    const { expiresAt } = deadline
    expect(expiresAt).toBe(clock.epoch() + 1_000)
    for (let call = 0; call < 100; call += 1) {
      clock.advance(7.3)
      expect(deadline.expiresAt).toBe(expiresAt)
    }
  })
})

describe('law 6: a budget', () => {
  test.each([
    ['of 60 days', 60 * day],
    ['of one more than setTimeout can count', 2 ** 31],
    ['of 2^32', 2 ** 32 + 5],
    ['of ten years', 3_650 * day],
  ])('%s ends then and not before', (_, budget) => {
    const clock = new ManualClock()
    const { signal } = Deadline.after(budget, { clock })
    clock.advance(budget - 1)
    expect(signal.aborted).toBe(false)
    clock.advance(1)
    expect(signal.aborted).toBe(true)
  })

  test.each([60 * day, 2 ** 31, 1e18, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE, Infinity])(
    'of %d ms does not end at once on the real clock',
    async (budget) => {
      const warnings: Error[] = []
      const note = (warning: Error): void => {
        warnings.push(warning)
      }
      process.on('warning', note)
      const deadline = Deadline.after(budget)
      const { signal } = deadline
      await new Promise((resolve) => setTimeout(resolve, 20))
      process.off('warning', note)
      // Node warns of a timer that is too long, and fires it at once, over and over
      expect(warnings).toEqual([])
      expect(signal.aborted).toBe(false)
      expect(deadline.remaining()).toBeGreaterThan(day)
      expect(deadline.expiresAt).toBeGreaterThan(Date.now())
      deadline.settle()
    },
  )
})
