import { type Clock, type Duration, refuseUnknownOptions, systemClock } from '@timebudget/core'
import { LRUCache } from 'lru-cache'
import { boundedKey } from './bounded-key.ts'
import { finiteDurationAboveZero, positiveInteger } from './option-values.ts'
import { SlidingCount } from './sliding-count.ts'

/** How many retries are allowed; every option may be left out. The defaults are those of Finagle's RetryBudget. */
export interface RetryBudgetOptions {
  /** Retries and hedges for each first attempt; 0.2. */
  readonly ratio?: number | undefined
  /** So many a second are allowed in any case, so that a service with few calls may retry at all; 10. */
  readonly minPerSecond?: number | undefined
  /** How far back calls are counted; `'10s'`. */
  readonly window?: Duration | undefined
  /** With more destinations the one longest unused is forgotten; 1,000, about 1 MiB. */
  readonly maxDestinations?: number | undefined
  /** Where time comes from; the process's own clock. */
  readonly clock?: Clock | undefined
}

// The window moves on by a tenth of itself, as Finagle's does.
const slicesOfWindow = 10

interface Counts {
  readonly firsts: SlidingCount
  readonly repeats: SlidingCount
}

/**
 * How many calls to a destination may be repeated: a share of the first attempts of a sliding window, and a few in any
 * case. An outage then costs a fifth more calls in place of three times as many. Retries and hedges share it.
 */
export class RetryBudget {
  readonly #ratio: number
  readonly #reserve: number
  readonly #sliceLength: number
  readonly #clock: Clock
  readonly #destinations: LRUCache<string, Counts>

  /** @throws TypeError that names an option which is unknown or cannot be read. */
  constructor(options: RetryBudgetOptions = {}) {
    refuseUnknownOptions(options, ['ratio', 'minPerSecond', 'window', 'maxDestinations', 'clock'])
    const window = finiteDurationAboveZero(options.window ?? '10s', 'window')
    this.#ratio = notNegative(options.ratio ?? 0.2, 'ratio')
    this.#reserve = (notNegative(options.minPerSecond ?? 10, 'minPerSecond') * window) / 1000
    this.#sliceLength = window / slicesOfWindow
    this.#clock = options.clock ?? systemClock
    this.#destinations = new LRUCache({
      max: positiveInteger(options.maxDestinations ?? 1000, 'maxDestinations'),
    })
  }

  /** Counts a first attempt. */
  deposit(destination: string): void {
    this.#countsOf(destination).firsts.add(this.#clock.now())
  }

  /** Counts a retry or a hedge and returns `true`, or returns `false`: then there must be none. */
  withdraw(destination: string): boolean {
    if (this.balance(destination) < 1) return false
    this.#countsOf(destination).repeats.add(this.#clock.now())
    return true
  }

  /** How many retries and hedges the destination may have now; not always a whole number. */
  balance(destination: string): number {
    const counts = this.#destinations.get(boundedKey(destination))
    if (counts === undefined) return this.#reserve
    const now = this.#clock.now()
    const balance = this.#reserve + counts.firsts.total(now) * this.#ratio - counts.repeats.total(now)
    // a thousand times 0.2 must not come to a little less than 200
    return Math.max(0, Math.round(balance * 1e6) / 1e6)
  }

  #countsOf(destination: string): Counts {
    const key = boundedKey(destination)
    let counts = this.#destinations.get(key)
    if (counts === undefined) {
      const window = { slice: this.#sliceLength, slices: slicesOfWindow }
      counts = { firsts: new SlidingCount(window), repeats: new SlidingCount(window) }
      this.#destinations.set(key, counts)
    }
    return counts
  }
}

/** The budget of every retry that names none: one for the process, by destination. */
export const defaultRetryBudget: RetryBudget = new RetryBudget()

function notNegative(value: number, option: string): number {
  if (value >= 0 && value < Infinity) return value
  throw new TypeError(`${option}: expected a number of at least 0, got ${String(value)}`)
}
