import { SlidingCount } from './sliding-count.ts'

/** What tells whether a floor should act, such as a `DeadlineQueue`: a function, or anything that knows whether it is busy. */
export type Pressure = { readonly busy: boolean } | (() => boolean)

// A queue at nine tenths of its capacity still answers 95 % in time (simulated): more cuts than that are overload.
const tooManyCuts = 0.05

const slices = 6

/**
 * Pressure as an operation feels it itself: at least 5 % of its calls in the window ran out of time, so that time is spent
 * on work for nobody. Users who left count neither way.
 */
export class CutShare {
  readonly #minSamples: number
  readonly #ended: SlidingCount
  readonly #cut: SlidingCount

  constructor({ window, minSamples }: { readonly window: number; readonly minSamples: number }) {
    this.#minSamples = minSamples
    this.#ended = new SlidingCount({ slice: window / slices, slices })
    this.#cut = new SlidingCount({ slice: window / slices, slices })
  }

  noteDone(now: number): void {
    this.#ended.add(now)
  }

  noteCut(now: number): void {
    this.#ended.add(now)
    this.#cut.add(now)
  }

  pressed(now: number): boolean {
    const ended = this.#ended.total(now)
    return ended >= this.#minSamples && this.#cut.total(now) >= tooManyCuts * ended
  }
}
