import { describe, expect, test } from 'vitest'
import { ManualClock } from '@timebudget/core/testing'
import type { Clock } from '../src/clock.ts'
import { Deadline, internals } from '../src/deadline.ts'
import { DeadlineTimers, timersOf } from '../src/deadline-timers.ts'
import { startOperation } from '../src/running-operation.ts'

class Entry {
  readonly at: number
  remove: (() => void) | undefined
  isHeld = false
  firedAt: number | undefined
  readonly #clock: Clock
  readonly #then: () => void

  constructor(at: number, clock: Clock, then = (): void => undefined) {
    this.at = at
    this.#clock = clock
    this.#then = then
  }

  fire(): void {
    expect(this.firedAt).toBeUndefined()
    this.firedAt = this.#clock.now()
    this.#then()
  }
}

/** Timers that remember for each entry where it is, as deadlines do. */
class Timers {
  readonly #clock: Clock
  readonly #timers: DeadlineTimers<Entry>

  constructor(clock: Clock) {
    this.#clock = clock
    this.#timers = new DeadlineTimers(clock, {
      momentOf: (entry) => entry.at,
      place: (entry, bucket, place) => {
        entry.remove = () => bucket.remove(place)
      },
      fire: (entry) => {
        entry.remove = undefined
        this.#release(entry)
        entry.fire()
      },
    })
  }

  add(entry: Entry): void {
    this.#timers.add(entry, this.#clock.now())
  }

  hold(entry: Entry): void {
    entry.isHeld = true
    this.#timers.hold()
  }

  remove(entry: Entry): void {
    entry.remove?.()
    entry.remove = undefined
    this.#release(entry)
  }

  #release(entry: Entry): void {
    if (entry.isHeld) this.#timers.release()
    entry.isHeld = false
  }
}

/** A small generator of pseudo-random numbers with a period of 2^32, so that a failure can be run again. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** From fractions of a millisecond to months, as many near as far. */
function distance(random: () => number): number {
  return 10 ** (random() * 10 - 1)
}

/** A manual clock that notes whether its wake-ups would keep the process alive. */
class HoldingClock extends ManualClock {
  readonly #held = new Set<object>()

  get isHeld(): boolean {
    return this.#held.size > 0
  }

  override wakeAfter(delay: number, wake: () => void): ReturnType<Clock['wakeAfter']> {
    const key = {}
    const timer = super.wakeAfter(delay, () => {
      this.#held.delete(key)
      wake()
    })
    return {
      hold: () => this.#held.add(key),
      release: () => this.#held.delete(key),
      cancel: () => {
        this.#held.delete(key)
        timer.cancel()
      },
    }
  }
}

describe('timers', () => {
  test('of 100,000 moments fire each once, in order, none early, none lost', () => {
    const random = randomFrom(1)
    const clock = new ManualClock()
    const timers = new Timers(clock)
    const order: Entry[] = []
    const entries: Entry[] = []
    const removed = new Set<Entry>()
    const addOne = (): void => {
      const entry: Entry = new Entry(clock.now() + distance(random), clock, () => {
        order.push(entry)
        // some are added while others fire
        if (random() < 0.05 && entries.length < 100_000) addOne()
      })
      timers.add(entry)
      entries.push(entry)
    }
    for (let round = 0; entries.length < 100_000; round += 1) {
      for (let added = 0; added < 200; added += 1) addOne()
      for (let number = 0; number < 40; number += 1) {
        const entry = entries[Math.floor(random() * entries.length)]
        if (entry === undefined || entry.firedAt !== undefined) continue
        timers.remove(entry)
        removed.add(entry)
      }
      expect(clock.pendingTimers).toBe(1)
      if (round % 7 === 0) clock.block(distance(random))
      clock.advance(distance(random) / 100)
    }
    clock.advance(1e10)
    const early: Entry[] = []
    for (const entry of entries) {
      expect(entry.firedAt === undefined).toBe(removed.has(entry))
      if ((entry.firedAt ?? Infinity) < entry.at) early.push(entry)
    }
    expect(early).toEqual([])
    expect(order.length + removed.size).toBe(entries.length)
    for (const [index, entry] of order.entries()) {
      const before = order[index - 1]
      if (before?.firedAt !== undefined) expect(entry.firedAt).toBeGreaterThanOrEqual(before.firedAt)
    }
    expect(clock.pendingTimers).toBe(0)
  }, 60_000)

  test('fire within the millisecond in which their moment falls, as a naive list of them would', () => {
    const random = randomFrom(4)
    const clock = new ManualClock()
    const timers = new Timers(clock)
    const entries = Array.from({ length: 20_000 }, () => new Entry(distance(random), clock))
    for (const entry of entries) timers.add(entry)
    clock.advance(1e10)
    const model = entries.toSorted((a, b) => a.at - b.at)
    const fired = entries.toSorted((a, b) => (a.firedAt ?? 0) - (b.firedAt ?? 0))
    expect(fired.map(({ firedAt }) => firedAt)).toEqual(model.map(({ at }) => Math.max(1, Math.ceil(at))))
  })

  test.each([4_095, 4_096, 2 ** 18 - 1, 2 ** 18, 2 ** 24, 2 ** 31, 2 ** 40, 2 ** 44])(
    'of an entry %d ms away fire at its moment, though it was filed roughly at first',
    (far) => {
      for (const start of [0, 0.5, 12_345.6, 262_143]) {
        const clock = new ManualClock()
        clock.advance(start)
        const entry = new Entry(clock.now() + far, clock)
        new Timers(clock).add(entry)
        clock.advance(entry.at - clock.now() - 0.01)
        expect(entry.firedAt).toBeUndefined()
        clock.advance(2.01) // rounded up twice: the moment, and what setTimeout counts
        expect(entry.firedAt).toBeGreaterThanOrEqual(entry.at)
      }
    },
  )

  test('wake up a handful of times for the far, not once for each millisecond on the way', () => {
    const clock = new ManualClock()
    let wakeUps = 0
    const counting: Clock = {
      now: () => clock.now(),
      epoch: () => clock.epoch(),
      wakeAfter: (delay, wake) =>
        clock.wakeAfter(delay, () => {
          wakeUps += 1
          wake()
        }),
    }
    const timers = new Timers(counting)
    const entry = new Entry(3_600_001.5, clock)
    timers.add(entry)
    clock.advance(1e7)
    expect(entry.firedAt).toBe(3_600_002)
    expect(wakeUps).toBeLessThanOrEqual(4)
  })

  test('that were removed are not woken up for once others have been', () => {
    const clock = new ManualClock()
    const delays: number[] = []
    const noting: Clock = {
      now: () => clock.now(),
      epoch: () => clock.epoch(),
      wakeAfter(delay, wake) {
        delays.push(delay)
        return clock.wakeAfter(delay, wake)
      },
    }
    const timers = new Timers(noting)
    const [first, removed, last] = [new Entry(10, clock), new Entry(20, clock), new Entry(100, clock)]
    for (const entry of [first, removed, last]) timers.add(entry)
    timers.remove(removed)
    clock.advance(1_000)
    expect(last.firedAt).toBe(100)
    expect(delays).toEqual([10, 90])
  })

  test('that a native timer wakes too early wait for the rest', () => {
    const clock = new ManualClock()
    const early: Clock = {
      now: () => clock.now(),
      epoch: () => clock.epoch(),
      wakeAfter: (delay, wake) => clock.wakeAfter(delay > 1 ? delay - 0.8 : delay, wake),
    }
    const entry = new Entry(100, clock)
    new Timers(early).add(entry)
    clock.advance(99.9)
    expect(entry.firedAt).toBeUndefined()
    clock.advance(1)
    expect(entry.firedAt).toBeGreaterThanOrEqual(100)
  })

  test('of one clock are one, and of another clock others', () => {
    const clock = new ManualClock()
    expect(timersOf(clock, internals)).toBe(timersOf(clock, internals))
    expect(timersOf(new ManualClock(), internals)).not.toBe(timersOf(clock, internals))
  })

  test('keep nothing for the moments that have passed', () => {
    const clock = new ManualClock()
    const timers = new Timers(clock)
    const passMoments = (count: number): number => {
      for (let moment = 0; moment < count; moment += 1) {
        timers.add(new Entry(clock.now() + 1, clock))
        clock.advance(1)
      }
      globalThis.gc?.()
      return process.memoryUsage().heapUsed
    }
    const before = passMoments(2_000)
    expect((passMoments(100_000) - before) / 100_000).toBeLessThan(20)
  })

  test('removed while others of the same millisecond fire do not', () => {
    const clock = new ManualClock()
    const timers = new Timers(clock)
    const entries: Entry[] = []
    const removeOthers = (): void => {
      for (const entry of entries) timers.remove(entry)
    }
    for (let number = 0; number < 3; number += 1) entries.push(new Entry(10, clock, removeOthers))
    for (const entry of entries) timers.add(entry)
    clock.advance(50)
    expect(entries.filter(({ firedAt }) => firedAt !== undefined)).toHaveLength(1)
    expect(clock.pendingTimers).toBe(0)
  })
})

describe('held timers', () => {
  test('keep the process alive until they fire', () => {
    const clock = new HoldingClock()
    const timers = new Timers(clock)
    const [held, other] = [new Entry(100, clock), new Entry(200, clock)]
    timers.add(other)
    expect(clock.isHeld).toBe(false)
    timers.add(held)
    timers.hold(held)
    expect(clock.isHeld).toBe(true)
    clock.advance(99)
    expect(clock.isHeld).toBe(true)
    clock.advance(1)
    expect(held.firedAt).toBe(100)
    expect(clock.isHeld).toBe(false)
    expect(clock.pendingTimers).toBe(1)
  })

  test('or are removed, the last of them', () => {
    const clock = new HoldingClock()
    const timers = new Timers(clock)
    const entries = [new Entry(100, clock), new Entry(100, clock)]
    for (const entry of entries) {
      timers.add(entry)
      timers.hold(entry)
    }
    for (const entry of entries) {
      expect(clock.isHeld).toBe(true)
      timers.remove(entry)
      timers.remove(entry)
    }
    expect(clock.isHeld).toBe(false)
  })

  test('of an operation keep it alive until that has ended, whatever else goes on', () => {
    const clock = new HoldingClock()
    const deadline = Deadline.after(1_000, { clock })
    internals.watch(deadline, { isOver: () => false, deadlineEnded: () => undefined }, { hold: false })
    expect(clock.isHeld).toBe(false)
    const running = startOperation('x', { deadline })
    expect(clock.isHeld).toBe(true)
    running.end()
    expect(clock.isHeld).toBe(false)
    expect(clock.pendingTimers).toBe(1)
  })

  test('hold on over every wake-up on the way to a far moment', () => {
    const clock = new HoldingClock()
    const timers = new Timers(clock)
    const entry = new Entry(3_600_000.5, clock)
    timers.add(entry)
    timers.hold(entry)
    while (entry.firedAt === undefined) {
      expect(clock.isHeld).toBe(true)
      clock.advance(997)
    }
    expect(clock.isHeld).toBe(false)
  })

  test('keep it alive also when a nearer one is added that does not', () => {
    const clock = new HoldingClock()
    const timers = new Timers(clock)
    const held = new Entry(1_000, clock)
    timers.add(held)
    timers.hold(held)
    timers.add(new Entry(10, clock))
    expect(clock.isHeld).toBe(true)
    clock.advance(500)
    expect(clock.isHeld).toBe(true)
  })
})
