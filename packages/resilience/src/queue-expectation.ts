import type { Latency } from './latency.ts'

/** How long a piece of work is expected to take, in milliseconds. */
export interface Expectation {
  readonly mean: number
  /** The chance, 0 to 1, of finishing within that time. */
  chance(within: number): number
  /** The time within which it finishes with that chance. */
  within(chance: number): number
  /** How much longer it is expected to take after it has run for so long. */
  residual(elapsed: number): number
  /** Whether it says when this very piece of work ends, rather than how long such work takes on the whole. */
  readonly exact: boolean
}

// Work that outruns its estimate takes a quarter of it more: what is left of log-normal work with an error of 35 %.
const overrun = 0.25

/** An estimate that somebody gave. */
export function givenExpectation(estimate: number): Expectation {
  return {
    mean: estimate,
    chance: (within) => (within >= estimate ? 1 : 0),
    within: () => estimate,
    residual: (elapsed) => (elapsed < estimate ? estimate - elapsed : estimate * overrun),
    exact: true,
  }
}

const points = 20

class LearnedExpectation implements Expectation {
  readonly mean: number
  readonly exact = false
  readonly #latency: Latency
  /** Equally likely durations, shortest first. */
  readonly #likely: readonly number[]

  constructor(latency: Latency, likely: readonly number[]) {
    this.#latency = latency
    this.#likely = likely
    this.mean = likely.reduce((sum, duration) => sum + duration, 0) / likely.length
  }

  chance(within: number): number {
    // what is longer than anything known is long enough
    return this.#latency.chance(within) ?? 1
  }

  within(chance: number): number {
    return this.#latency.quantile(chance) ?? 0
  }

  residual(elapsed: number): number {
    const likely = this.#likely
    let sum = 0
    let longer = 0
    for (let index = likely.length - 1; index >= 0; index -= 1) {
      const duration = likely[index] ?? 0
      if (duration <= elapsed) break
      sum += duration - elapsed
      longer += 1
    }
    return longer === 0 ? this.mean * overrun : sum / longer
  }
}

// Milliseconds for which a learned expectation is used again: reading twenty quantiles costs more than a whole enqueue.
const fresh = 100

/** What the latencies of a queue say at the moment. */
export class LearnedExpectations {
  readonly #kept = new WeakMap<Latency, { readonly at: number; readonly expectation: Expectation }>()

  /** An estimate that somebody gave, in the light of how long work takes whose estimate is 1,000. */
  corrected(estimate: number, thousandths: Latency, now: number): Expectation {
    const usual = this.of(thousandths, now)
    return usual === undefined || estimate === 0
      ? givenExpectation(estimate)
      : new Scaled(usual, estimate / 1000)
  }

  /** `undefined` while too little is known. */
  of(latency: Latency, now: number): Expectation | undefined {
    const kept = this.#kept.get(latency)
    if (kept !== undefined && now - kept.at < fresh) return kept.expectation
    const likely: number[] = []
    for (let point = 0; point < points; point += 1) {
      const duration = latency.quantile((point + 0.5) / points)
      if (duration === undefined) return undefined
      likely.push(duration)
    }
    const expectation = new LearnedExpectation(latency, likely)
    this.#kept.set(latency, { at: now, expectation })
    return expectation
  }
}

class Scaled implements Expectation {
  readonly exact = false
  readonly #of: Expectation
  readonly #by: number

  constructor(of: Expectation, by: number) {
    this.#of = of
    this.#by = by
  }

  get mean(): number {
    return this.#of.mean * this.#by
  }

  chance(within: number): number {
    return this.#of.chance(within / this.#by)
  }

  within(chance: number): number {
    return this.#of.within(chance) * this.#by
  }

  residual(elapsed: number): number {
    return this.#of.residual(elapsed / this.#by) * this.#by
  }
}
