import { describe, expect, test } from 'vitest'
import {
  type Clock,
  BudgetTooSmallError,
  CancelledError,
  ClientClosedError,
  Deadline,
  DeadlineExceededError,
  OperationTimeoutError,
} from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

describe('a deadline', () => {
  test('knows what is left, what has passed, and never less than nothing', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('3s', { clock })
    clock.advance(1_200)
    expect(deadline).toMatchObject({ budget: 3_000, expired: false, reason: undefined })
    expect(deadline.remaining()).toBe(1_800)
    expect(deadline.elapsed()).toBe(1_200)
    clock.advance(5_000)
    expect(deadline.remaining()).toBe(0)
    expect(deadline.elapsed()).toBe(6_200)
  })

  test('has a reason that says what was allowed', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('3s', { clock, label: 'chat' })
    clock.advance(3_000)
    expect(deadline.reason).toBeInstanceOf(DeadlineExceededError)
    expect(deadline.reason).toMatchObject({
      message: 'the deadline of 3000 ms has passed',
      operation: 'chat',
      budget: 3_000,
      elapsed: 3_000,
      remaining: 0,
    })
  })

  test('has ended at its moment even though the event loop was blocked, and its signal follows', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after(100, { clock })
    const { signal } = deadline
    clock.block(100)
    expect(signal.aborted).toBe(false)
    expect(deadline.expired).toBe(true)
    clock.advance(0)
    expect(signal.reason).toBe(deadline.reason)
  })

  test('lends a client no more than is left', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('1s', { clock })
    clock.advance(400)
    expect(deadline.timeoutFor('200ms')).toBe(200)
    expect(deadline.timeoutFor(10.7)).toBe(10)
    expect(deadline.timeoutFor(0.2)).toBe(1)
    expect(deadline.timeoutFor('5s')).toBe(600)
    expect(deadline.timeoutFor(Infinity)).toBe(600)
  })

  test('lends nothing once it has ended: it throws the reason', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('1s', { clock })
    clock.advance(1_000)
    const reason = deadline.reason
    expect(() => deadline.timeoutFor(0)).toThrow(reason)
    expect(() => deadline.assertRemaining(0)).toThrow(reason)
  })

  test('asserts that a floor is left, and says what was needed', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('3s', { clock })
    clock.advance(2_788)
    expect(() => deadline.assertRemaining(212)).not.toThrow()
    expect(() => deadline.assertRemaining(212.5)).toThrow(BudgetTooSmallError)
    expect(() => deadline.assertRemaining('800ms', 'generate')).toThrow(
      'generate needs 800 ms, 212 ms of 3000 ms are left',
    )
    expect(() => deadline.assertRemaining({ current: () => 213 })).toThrow(BudgetTooSmallError)
    expect(() => deadline.assertRemaining({ current: () => Number.NaN })).not.toThrow()
    expect(() => deadline.assertRemaining({ current: () => -1 })).not.toThrow()
  })

  test('of Infinity never ends and takes no timer', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after(Infinity, { clock })
    expect(deadline.signal.aborted).toBe(false)
    expect(clock.pendingTimers).toBe(0)
    clock.advance(1e15)
    expect(deadline.remaining()).toBe(Infinity)
    expect(deadline.timeoutFor('5s')).toBe(5_000)
    expect(deadline.expiresAt).toBe(Infinity)
  })

  test('of nothing has ended when it is made', () => {
    const deadline = Deadline.after(0, { clock: new ManualClock() })
    expect(deadline.expired).toBe(true)
    expect(deadline.signal.aborted).toBe(true)
  })
})

describe('a child', () => {
  test('and a deadline are given exactly what was asked for, not a rounding error more', () => {
    const clock = new ManualClock()
    for (let turn = 0; turn < 1_000; turn += 1) {
      clock.advance(0.1 + turn / 7)
      const deadline = Deadline.after(2_000, { clock })
      const child = Deadline.after('1h', { clock }).child({ timeout: 2_000 })
      expect([deadline.budget, child.budget]).toEqual([2_000, 2_000])
      expect(Math.max(deadline.remaining(), child.remaining())).toBeLessThanOrEqual(2_000)
    }
  })

  test('has its own timeout, within what is left of its parent', () => {
    const clock = new ManualClock()
    const parent = Deadline.after('1s', { clock })
    expect(parent.child({ timeout: '200ms' }).budget).toBe(200)
    clock.advance(900)
    expect(parent.child({ timeout: '200ms' }).budget).toBe(100)
  })

  test('leaves a reserve to its parent', () => {
    const clock = new ManualClock()
    const parent = Deadline.after('1s', { clock })
    const child = parent.child({ reserve: '300ms' })
    clock.advance(700)
    expect(child.reason).toBeInstanceOf(OperationTimeoutError)
    expect(parent.remaining()).toBe(300)
    expect(child.reason).toMatchObject({ budget: 700, remaining: 300, status: 504 })
  })

  test('of the lesser of timeout and reserve', () => {
    const parent = Deadline.after('1s', { clock: new ManualClock() })
    expect(parent.child({ timeout: 500, reserve: 300 }).budget).toBe(500)
    expect(parent.child({ timeout: 900, reserve: 300 }).budget).toBe(700)
    expect(parent.child({ reserve: 2_000 }).budget).toBe(0)
    expect(parent.child({ reserve: Infinity }).budget).toBe(0)
    expect(Deadline.after(Infinity).child({ reserve: Infinity })).toMatchObject({ budget: 0, expired: true })
  })

  test('is named in the error its timeout makes', () => {
    const clock = new ManualClock()
    const child = Deadline.after('1s', { clock }).child({ timeout: 200, label: 'rerank' })
    clock.advance(200)
    expect(child.reason?.message).toBe('rerank took longer than its 200 ms; the request has 800 ms left')
  })

  test('of a parent that is over has the parent’s reason, whatever its own limits', () => {
    const clock = new ManualClock()
    const parent = Deadline.after('1s', { clock })
    clock.advance(600)
    parent.cancel(new Error('stop'))
    clock.advance(100)
    for (const options of [{}, { timeout: 50 }, { timeout: 0 }, { reserve: '500ms' }, { reserve: '5s' }]) {
      expect(parent.child(options).reason).toBe(parent.reason)
      expect(parent.child(options).signal.reason).toBe(parent.reason)
    }
  })

  test('of all its parent has ends for its parent’s reason, however the clock runs on between two looks at it', () => {
    for (let begun = 0; begun < 12; begun += 1) {
      const clock = new ManualClock()
      const running: Clock = {
        now() {
          clock.block(0.25)
          return clock.now()
        },
        epoch: () => clock.epoch(),
        wakeAfter: (delay, wake) => clock.wakeAfter(delay, wake),
      }
      const parent = Deadline.after(10, { clock: running })
      const child = parent.child({ timeout: 1_000 })
      clock.block(7 + begun * 0.1)
      while (child.reason === undefined) clock.block(0.05)
      expect(child.reason.code).toBe('DEADLINE_EXCEEDED')
    }
  })

  test('made as a deadline of its own is bound to its parent too', () => {
    const clock = new ManualClock()
    const parent = Deadline.after('1s', { clock })
    const child = Deadline.after('5s', { parent })
    expect(child.budget).toBe(1_000)
    expect(child.ledger).toBe(parent.ledger)
    parent.cancel()
    expect(child.reason).toBe(parent.reason)
    expect(Deadline.at(clock.epoch() + 9_000, { parent }).reason).toBe(parent.reason)
  })
})

describe('cancelling', () => {
  test('ends the deadline now, with what it was given as the cause', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('1s', { clock })
    const { signal } = deadline
    clock.advance(250)
    const cause = new Error('the user pressed escape')
    deadline.cancel(cause)
    expect(deadline.remaining()).toBe(0)
    expect(deadline.expired).toBe(true)
    expect(deadline.reason).toBeInstanceOf(CancelledError)
    expect(deadline.reason).toMatchObject({ cause, budget: 1_000, elapsed: 250, outcome: 'cancelled' })
    expect(signal.reason).toBe(deadline.reason)
  })

  test('with one of our errors makes it the reason as it is', () => {
    const gone = new ClientClosedError('the client went away')
    const deadline = Deadline.after('1s')
    deadline.cancel(gone)
    expect(deadline.signal.reason).toBe(gone)
  })

  test('a second time, or after the end, changes nothing', () => {
    const clock = new ManualClock()
    const cancelled = Deadline.after('1s', { clock })
    cancelled.cancel('first')
    cancelled.cancel('second')
    expect(cancelled.reason?.cause).toBe('first')
    const passed = Deadline.after('1s', { clock })
    clock.block(1_000)
    passed.cancel('too late')
    expect(passed.reason).toBeInstanceOf(DeadlineExceededError)
  })

  test('a child leaves its parent and its siblings alone', () => {
    const parent = Deadline.after('1s', { clock: new ManualClock() })
    const [one, other] = [parent.child({}), parent.child({})]
    one.cancel()
    expect([parent.signal.aborted, one.signal.aborted, other.signal.aborted]).toEqual([false, true, false])
  })
})

describe('settling', () => {
  test('keeps the signal from aborting, ever', () => {
    const clock = new ManualClock()
    const deadline = Deadline.after('1s', { clock })
    const { signal } = deadline
    deadline.settle()
    deadline.settle()
    deadline.cancel('too late')
    clock.advance(5_000)
    expect(signal.aborted).toBe(false)
  })

  test('is what leaving a block does', () => {
    const clock = new ManualClock()
    let kept: Deadline
    {
      using deadline = Deadline.after('1s', { clock })
      kept = deadline
      expect(kept.signal.aborted).toBe(false)
    }
    clock.advance(5_000)
    expect(kept.signal.aborted).toBe(false)
  })

  test('leaves the children to whoever stands above', () => {
    const clock = new ManualClock()
    const root = Deadline.after('1s', { clock })
    const middle = root.child({ timeout: '500ms' })
    const [early, late] = [middle.child({}), middle.child({})]
    expect([early.signal.aborted, late.signal.aborted]).toEqual([false, false])
    middle.settle()
    root.cancel('over')
    expect([early.signal.reason, late.signal.reason]).toEqual([root.reason, root.reason])
  })

  test('in a listener, while those above are telling of their end, does not leave the children behind', () => {
    const root = Deadline.after('1s', { clock: new ManualClock() })
    const middle = root.child({})
    const child = middle.child({})
    const { signal } = child
    root.signal.addEventListener('abort', () => middle.settle())
    expect(middle.signal.aborted).toBe(false)
    root.cancel('over')
    expect(middle.signal.aborted).toBe(false)
    expect(signal.reason).toBe(root.reason)
  })

  test('a parent does not lengthen what its children have', () => {
    const clock = new ManualClock()
    const parent = Deadline.after('1s', { clock })
    const child = parent.child({ timeout: '5s' })
    const { signal } = child
    parent.settle()
    clock.advance(1_000)
    expect(signal.aborted).toBe(true)
    expect(child.reason).toBe(parent.reason)
  })
})
