import type { Clock, ClockTimer } from '@timebudget/core'
import { type Event, EventHeap } from './event-heap.ts'

class Wake implements Event, ClockTimer {
  readonly at: number
  readonly order: number
  wake: (() => void) | undefined

  constructor(at: number, order: number, wake: () => void) {
    this.at = at
    this.order = order
    this.wake = wake
  }

  hold(): void {}

  release(): void {}

  cancel(): void {
    this.wake = undefined
  }
}

// what waits for the process itself, such as a write to the terminal, gets a turn now and then
const wakesBetweenTurns = 10_000

/**
 * A clock that jumps from one wake-up to the next, and lets all that a wake-up has set going come to rest before the
 * next one. It starts at 0, and its wall clock at the start of 2026, so that runs are alike to the last digit.
 */
export class VirtualClock implements Clock {
  readonly #wakes = new EventHeap<Wake>()
  #now = 0
  #asked = 0

  now(): number {
    return this.#now
  }

  epoch(): number {
    return Date.UTC(2026, 0, 1) + this.#now
  }

  wakeAfter(delay: number, wake: () => void): ClockTimer {
    const pending = new Wake(this.#now + Math.max(0, delay), this.#asked, wake)
    this.#asked += 1
    this.#wakes.push(pending)
    return pending
  }

  /** Runs until nobody waits for anything; rejects with what a wake-up throws. */
  async run(): Promise<void> {
    await promisesAtRest()
    let turns = 0
    for (let next = this.#wakes.pop(); next !== undefined; next = this.#wakes.pop()) {
      if (next.wake === undefined) continue
      this.#now = next.at
      next.wake()
      await promisesAtRest()
      turns += 1
      if (turns % wakesBetweenTurns === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

/** Node runs a tick only when no promise has anything left to run; a seventh of the price of setImmediate. */
function promisesAtRest(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve))
}
