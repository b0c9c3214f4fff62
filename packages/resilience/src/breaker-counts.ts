import type { ResolvedBreakerOptions } from './breaker-options.ts'

// Enough for the ratio to move smoothly, few enough to be added up at every failure.
const slices = 10

interface Slice {
  /** Which stretch of the clock it stands for; one that has gone by is empty. */
  stretch: number
  calls: number
  failures: number
}

/** How the calls of a closed circuit have gone: failures in a row, and their share in a sliding window. */
export class BreakerCounts {
  readonly #options: Pick<ResolvedBreakerOptions, 'failures' | 'ratio' | 'window' | 'minimum' | 'clock'>
  readonly #ring: Slice[] = Array.from({ length: slices }, () => ({
    stretch: -Infinity,
    calls: 0,
    failures: 0,
  }))
  #inARow = 0

  constructor(options: Pick<ResolvedBreakerOptions, 'failures' | 'ratio' | 'window' | 'minimum' | 'clock'>) {
    this.#options = options
  }

  /** Adds how a call ended; whether the circuit is to open. */
  add({ failed }: { readonly failed: boolean }): boolean {
    this.#inARow = failed ? this.#inARow + 1 : 0
    const { ratio, failures } = this.#options
    if (ratio !== undefined) this.#count({ failed })
    return failed && (this.#inARow >= failures || (ratio !== undefined && this.#exceeds(ratio)))
  }

  /** Forgets everything: what was before an outage says nothing about what comes after it. */
  clear(): void {
    this.#inARow = 0
    for (const slice of this.#ring) slice.stretch = -Infinity
  }

  #count({ failed }: { readonly failed: boolean }): void {
    const stretch = this.#stretch()
    const slice = this.#ring[stretch % slices]
    if (slice === undefined) return
    if (slice.stretch !== stretch) {
      slice.stretch = stretch
      slice.calls = slice.failures = 0
    }
    slice.calls += 1
    if (failed) slice.failures += 1
  }

  #exceeds(ratio: number): boolean {
    const oldest = this.#stretch() - slices + 1
    let calls = 0
    let failures = 0
    for (const slice of this.#ring) {
      if (slice.stretch < oldest) continue
      calls += slice.calls
      failures += slice.failures
    }
    return calls >= this.#options.minimum && failures >= ratio * calls
  }

  #stretch(): number {
    return Math.floor((this.#options.clock.now() * slices) / this.#options.window)
  }
}
