import type { Clock, ClockTimer } from '../clock.ts'

interface PendingWake {
  readonly at: number
  readonly wake: () => void
}

/** A clock that stands still until a test turns it. */
export class ManualClock implements Clock {
  #now = 0
  #epoch: number
  #pending: PendingWake[] = []

  constructor(options: { readonly epoch?: number } = {}) {
    this.#epoch = options.epoch ?? Date.UTC(2026, 0, 1)
  }

  now(): number {
    return this.#now
  }

  epoch(): number {
    return this.#epoch
  }

  /** How many wake-ups are pending: what a test counts to see that nothing is left. */
  get pendingTimers(): number {
    return this.#pending.length
  }

  wakeAfter(delay: number, wake: () => void): ClockTimer {
    const pending: PendingWake = { at: this.#now + delay, wake }
    this.#pending.push(pending)
    return {
      hold: () => undefined,
      release: () => undefined,
      cancel: () => {
        this.#pending = this.#pending.filter((other) => other !== pending)
      },
    }
  }

  /** Turns the clock by that many milliseconds and calls, in order, what is due on the way. */
  advance(milliseconds: number): void {
    const target = this.#now + milliseconds
    for (let next = this.#nextDue(target); next !== undefined; next = this.#nextDue(target)) {
      this.#turnTo(Math.max(this.#now, next.at))
      this.#pending = this.#pending.filter((other) => other !== next)
      next.wake()
    }
    this.#turnTo(Math.max(this.#now, target)) // who was called may have turned it too
  }

  /** Turns the clock without calling anybody, as a blocked event loop would. */
  block(milliseconds: number): void {
    this.#turnTo(this.#now + milliseconds)
  }

  /** Sets the wall clock forth or back, as an administrator or NTP would; monotonic time does not notice. */
  shiftEpoch(milliseconds: number): void {
    this.#epoch += milliseconds
  }

  #turnTo(moment: number): void {
    this.#epoch += moment - this.#now
    this.#now = moment
  }

  #nextDue(target: number): PendingWake | undefined {
    let next: PendingWake | undefined
    for (const pending of this.#pending) {
      if (pending.at <= target && (next === undefined || pending.at < next.at)) next = pending
    }
    return next
  }
}
