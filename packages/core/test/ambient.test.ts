import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { bind, currentDeadline, Deadline, detach, operation, runWithDeadline } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

/** As DataLoader, p-limit and pools do: all that waits runs in the context of whoever came first. */
class Batch {
  readonly #waiting: (() => void)[] = []

  load<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve) => {
      this.#waiting.push(() => resolve(work()))
      if (this.#waiting.length === 1) setImmediate(() => this.#dispatch())
    })
  }

  #dispatch(): void {
    for (const work of this.#waiting.splice(0)) work()
  }
}

describe('the current deadline', () => {
  test('is none outside of any', () => {
    expect(currentDeadline()).toBeUndefined()
  })

  test('follows promises, timers and immediates', async () => {
    const deadline = Deadline.after('1m')
    await runWithDeadline(deadline, async () => {
      await delay(1)
      expect(currentDeadline()).toBe(deadline)
      await new Promise<void>((resolve) => setImmediate(resolve))
      expect(currentDeadline()).toBe(deadline)
      const seen = await new Promise((resolve) => setTimeout(() => resolve(currentDeadline()), 1))
      expect(seen).toBe(deadline)
    })
  })

  test('is the innermost, and the outer one again after it', () => {
    const [outer, inner] = [Deadline.after('2m'), Deadline.after('1m')]
    runWithDeadline(outer, () => {
      runWithDeadline(inner, () => expect(currentDeadline()).toBe(inner))
      expect(currentDeadline()).toBe(outer)
    })
  })

  test('gives what the work gives and throws what it throws', () => {
    const deadline = Deadline.after('1m')
    expect(runWithDeadline(deadline, () => 3)).toBe(3)
    const fail = (): never => {
      throw new Error('refused')
    }
    expect(() => runWithDeadline(deadline, fail)).toThrow('refused')
    expect(() => detach(fail)).toThrow('refused')
    expect(currentDeadline()).toBeUndefined()
  })

  test('of whoever hears an abort is the deadline that ended, not that of the timer', () => {
    const clock = new ManualClock()
    const [first, second] = [Deadline.after(10, { clock }), Deadline.after(20, { clock })]
    const seen: (Deadline | undefined)[] = []
    for (const deadline of [first, second]) {
      runWithDeadline(deadline, () =>
        deadline.signal.addEventListener('abort', () => seen.push(currentDeadline())),
      )
    }
    runWithDeadline(Deadline.after('1m'), () => clock.advance(20))
    expect(seen).toEqual([first, second])
  })
})

describe('detached work', () => {
  test('has no deadline, and outlives the request', async () => {
    const clock = new ManualClock()
    const request = Deadline.after('1s', { clock })
    const job = runWithDeadline(request, () =>
      detach(async () => {
        await delay(1)
        expect(currentDeadline()).toBeUndefined()
        return operation('audit', {}, ({ timeout }) => timeout)
      }),
    )
    clock.advance(5_000)
    await expect(job).resolves.toBe(Infinity)
  })

  test('keeps every other context', () => {
    const trace = new AsyncLocalStorage<string>()
    trace.run('trace-1', () =>
      runWithDeadline(Deadline.after('1m'), () => detach(() => expect(trace.getStore()).toBe('trace-1'))),
    )
  })
})

describe('a bound function', () => {
  test('runs under the deadline of whoever bound it, in a pool that mixes contexts', async () => {
    const batch = new Batch()
    const [one, two] = [Deadline.after('1m'), Deadline.after('2m')]
    const load = (deadline: Deadline, isBound: boolean): Promise<Deadline | undefined> =>
      runWithDeadline(deadline, () => batch.load(isBound ? bind(currentDeadline) : currentDeadline))
    expect(await Promise.all([load(one, false), load(two, false)])).toEqual([one, one])
    const bound = await Promise.all([load(one, true), load(two, true)])
    expect(bound[0]).toBe(one)
    expect(bound[1]).toBe(two)
  })

  test('bound under none runs under none', () => {
    const unbound = bind(currentDeadline)
    expect(runWithDeadline(Deadline.after('1m'), unbound)).toBeUndefined()
  })

  test('keeps this, arguments and result', () => {
    const counter = {
      step: 2,
      add: bind(function add(this: { step: number }, to: number) {
        return to + this.step
      }),
    }
    expect(counter.add(3)).toBe(5)
    const bound = runWithDeadline(Deadline.after('1m'), () =>
      bind(function scale(this: { step: number }, by: number) {
        return by * this.step
      }),
    )
    expect(bound.call(counter, 5)).toBe(10)
  })
})
