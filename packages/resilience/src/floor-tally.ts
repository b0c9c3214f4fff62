import type { Clock } from '@timebudget/core'
import { LRUCache } from 'lru-cache'
import { SlidingCount } from './sliding-count.ts'
import { boundedKey } from './bounded-key.ts'

const slices = 10

// Operations may be named after users or models; what is forgotten here begins anew, with nothing refused.
const mostOperations = 1000

const pauseBetweenWarnings = 60_000

/** What all floors of one operation have in common in a process: how many starts they saw, and how many they refused. */
export class FloorTally {
  readonly #starts: SlidingCount
  readonly #refused: SlidingCount
  #warnedAt = -Infinity

  /** `window` in milliseconds. */
  constructor({ window }: { readonly window: number }) {
    const slice = window / slices
    this.#starts = new SlidingCount({ slice, slices })
    // a slice more, so that the share below is never less than what the exact window would give
    this.#refused = new SlidingCount({ slice, slices: slices + 1 })
  }

  start(now: number): void {
    this.#starts.add(now)
  }

  /** Whether one more refusal keeps the refused share of the starts in the window, this one included, within `share`. */
  mayRefuse(now: number, share: number): boolean {
    return this.#refused.total(now) + 1 <= share * this.#starts.total(now)
  }

  refuse(now: number): void {
    this.#refused.add(now)
  }

  /** Whether nothing was said of this operation for a minute; from now on something is. */
  mayWarn(now: number): boolean {
    if (now - this.#warnedAt < pauseBetweenWarnings) return false
    this.#warnedAt = now
    return true
  }
}

const tallies = new WeakMap<Clock, LRUCache<string, FloorTally>>()

/** The tally of an operation over that many milliseconds: one a process, whoever asks. */
export function tallyOf(
  operation: string,
  { window, clock }: { readonly window: number; readonly clock: Clock },
): FloorTally {
  let ofClock = tallies.get(clock)
  if (ofClock === undefined) {
    ofClock = new LRUCache({ max: mostOperations })
    tallies.set(clock, ofClock)
  }
  const name = boundedKey(`${window} ${operation}`)
  let tally = ofClock.get(name)
  if (tally === undefined) {
    tally = new FloorTally({ window })
    ofClock.set(name, tally)
  }
  return tally
}
