import type { ResolvedBreakerOptions } from './breaker-options.ts'
import { SlidingCount } from './sliding-count.ts'

// Enough for the ratio to move smoothly.
const slices = 10

/** How the calls of a closed circuit have gone: failures in a row, and their share in a sliding window. */
export class BreakerCounts {
  readonly #options: Pick<ResolvedBreakerOptions, 'failures' | 'ratio' | 'minimum' | 'clock'>
  readonly #calls: SlidingCount
  readonly #failures: SlidingCount
  #inARow = 0

  constructor(options: Pick<ResolvedBreakerOptions, 'failures' | 'ratio' | 'window' | 'minimum' | 'clock'>) {
    this.#options = options
    const slice = options.window / slices
    this.#calls = new SlidingCount({ slice, slices })
    this.#failures = new SlidingCount({ slice, slices })
  }

  /** Adds how a call ended; whether the circuit is to open. */
  add({ failed }: { readonly failed: boolean }): boolean {
    this.#inARow = failed ? this.#inARow + 1 : 0
    const { ratio, failures, minimum, clock } = this.#options
    if (ratio === undefined) return failed && this.#inARow >= failures
    const now = clock.now()
    this.#calls.add(now)
    if (!failed) return false
    this.#failures.add(now)
    const calls = this.#calls.total(now)
    const isTooMuch = calls >= minimum && this.#failures.total(now) >= ratio * calls
    return isTooMuch || this.#inARow >= failures
  }

  /** Forgets everything: what was before an outage says nothing about what comes after it. */
  clear(): void {
    this.#inARow = 0
    this.#calls.clear()
    this.#failures.clear()
  }
}
