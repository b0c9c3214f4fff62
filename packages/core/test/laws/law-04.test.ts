import { AsyncLocalStorage } from 'node:async_hooks'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Deadline, operation, startOperation } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { Forest, lives } from '../support/forest.ts'

/** Whether what was made, used and dropped in there is gone after garbage collection. */
async function isCollected(make: () => object | Promise<object>): Promise<boolean> {
  const weak = await (async () => new WeakRef(await make()))()
  for (let round = 0; round < 10 && weak.deref() !== undefined; round += 1) {
    await new Promise((resolve) => setImmediate(resolve))
    globalThis.gc?.()
  }
  return weak.deref() === undefined
}

/** Counts how often it is asked for a timer. */
class CountingClock extends ManualClock {
  asked = 0

  override wakeAfter(delay: number, wake: () => void): ReturnType<ManualClock['wakeAfter']> {
    this.asked += 1
    return super.wakeAfter(delay, wake)
  }
}

test('law 4: once all are settled the clock wakes up at most once more, and sets no timer then', () => {
  fc.assert(
    fc.property(lives, (steps) => {
      const clock = new CountingClock()
      const forest = new Forest(clock)
      for (const step of steps) forest.play(step)
      for (const { deadline } of forest.trees) deadline.settle()
      const { asked } = clock
      clock.advance(1e9)
      expect(clock.asked).toBe(asked)
      expect(clock.pendingTimers).toBe(0)
    }),
    { numRuns: 1_000 },
  )
})

test('law 4: a settled deadline is forgotten by its parent, its children and the clock', async () => {
  const clock = new ManualClock()
  const parent = Deadline.after('1h', { clock })
  const kept: unknown[] = [parent.signal]
  const settled = await isCollected(() => {
    const deadline = parent.child({ timeout: '30m' })
    kept.push(deadline.signal.aborted)
    deadline.settle()
    return deadline
  })
  expect(settled).toBe(true)
  expect(kept).toHaveLength(2)
})

test('law 4: a deadline that has ended is forgotten by a parent that has not', async () => {
  const clock = new ManualClock()
  const parent = Deadline.after('1h', { clock })
  const ended = await isCollected(() => {
    const child = parent.child({ timeout: 10 })
    child.signal.addEventListener('abort', () => undefined)
    clock.advance(10)
    return child
  })
  const cancelled = await isCollected(() => {
    const { deadline } = startOperation('x', { deadline: parent })
    deadline.cancel()
    return deadline
  })
  expect([ended, cancelled]).toEqual([true, true])
  expect(parent.signal.aborted).toBe(false)
})

test('law 4: an operation that is over is forgotten by its deadline', async () => {
  const parent = Deadline.after('1h')
  const forgotten = await isCollected(async () => {
    return operation('x', { deadline: parent, timeout: '30m' }, (scope) => {
      scope.signal.addEventListener('abort', () => undefined)
      return scope
    })
  })
  expect(forgotten).toBe(true)
  expect(parent.signal.aborted).toBe(false)
  parent.settle()
})

test('law 4: the timer that many requests share keeps the context of none of them', async () => {
  const context = new AsyncLocalStorage<object>()
  const forgotten = await isCollected(() => {
    const request = { body: 'a large one' }
    context.run(request, () => {
      // the earliest moment in this file: the shared timer is set anew, here
      const deadline = Deadline.after('10m')
      expect(deadline.signal.aborted).toBe(false)
      deadline.settle()
    })
    return request
  })
  expect(forgotten).toBe(true)
})

test('law 4: a deadline that many children left, in whatever order, still reaches all the others', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(19), { maxLength: 20 }), (leaving) => {
      const parent = Deadline.after('1h', { clock: new ManualClock() })
      const children = Array.from({ length: 20 }, () => parent.child({}))
      const signals = children.map(({ signal }) => signal)
      for (const [order, index] of leaving.entries()) {
        if (order % 2 === 0) children[index]?.settle()
        else children[index]?.cancel()
      }
      parent.cancel()
      const settled = new Set(leaving.filter((_, order) => order % 2 === 0))
      expect(signals.map(({ aborted }) => aborted)).toEqual(children.map((_, index) => !settled.has(index)))
    }),
    { numRuns: 500 },
  )
})
