import { AsyncResource } from 'node:async_hooks'

/** Where time comes from; pass one in to turn it by hand in a test (`@timebudget/core/testing`). */
export interface Clock {
  /** Monotonic milliseconds; the only time that decides inside a process. */
  now(): number
  /** Unix epoch milliseconds; read only where a deadline meets the wire. */
  epoch(): number
  /** Calls back once after `delay` milliseconds, unref'd, outside any request's async context. */
  wakeAfter(delay: number, wake: () => void): ClockTimer
}

/** A pending wake-up of a clock. */
export interface ClockTimer {
  /** While held, the timer keeps the process alive. */
  hold(): void
  release(): void
  cancel(): void
}

/** Node fires a longer setTimeout at once. */
const longestTimeout = 2 ** 31 - 1

// A timer made inside a request would keep that request's async context, and all it holds, alive.
const outsideRequests = new AsyncResource('timebudget.clock')

class SystemTimer implements ClockTimer {
  readonly #timeout: NodeJS.Timeout

  constructor(delay: number, wake: () => void) {
    this.#timeout = setTimeout(wake, Math.min(delay, longestTimeout)).unref()
  }

  hold(): void {
    this.#timeout.ref()
  }

  release(): void {
    this.#timeout.unref()
  }

  cancel(): void {
    clearTimeout(this.#timeout)
  }
}

/** The process's own clock: `performance.now()`, `Date.now()` and `setTimeout`. */
export const systemClock: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  wakeAfter: (delay, wake) => outsideRequests.runInAsyncScope(() => new SystemTimer(delay, wake)),
}
