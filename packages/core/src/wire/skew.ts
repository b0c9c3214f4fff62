/** What one peer's messages tell about its clock. */
export interface ClockReading {
  /** Milliseconds by which this message was held up beyond the peer's usual transit. */
  readonly charged: number
  /** Smallest transit lately seen: the difference of the two clocks as far as it can be known, ms. */
  readonly skew: number
}

/** How far a peer's clock may be off before that counts, ms. */
export const defaultSkewTolerance = 50

/** Two windows of this length are remembered, so a step of either clock is forgotten after two minutes. */
const windowLength = 60_000
const samplesNeeded = 5
/** More than this is not waiting: several clocks stand behind one address. */
const mostCharged = 2_000
const worthAWarning = 20
const betweenWarnings = 60_000

/**
 * The transit history of one peer. Transit is network and queue time plus the difference of the two clocks;
 * the smallest lately seen is the constant part, so what exceeds it was spent waiting.
 */
export class PeerClock {
  #windowStart = -Infinity
  #smallest = Infinity
  #samples = 0
  #smallestBefore = Infinity
  #samplesBefore = 0
  #warnedAt = -Infinity

  /** Takes one message's transit (ms), seen at epoch ms `at`, and says how much of it was waiting. */
  observe(transit: number, at: number, tolerance: number = defaultSkewTolerance): ClockReading {
    this.#turnWindow(at)
    const isKnown = this.#samples + this.#samplesBefore >= samplesNeeded
    this.#smallest = Math.min(this.#smallest, transit)
    this.#samples += 1
    const skew = Math.min(this.#smallest, this.#smallestBefore)
    const excess = transit - skew
    const isWaiting = isKnown && excess > tolerance && excess <= mostCharged
    return { charged: isWaiting ? excess : 0, skew }
  }

  /** The skew to warn of at epoch ms `at`, or `undefined`: it must be known, 20 ms or more, and a minute since the last. */
  takeWarning(at: number): number | undefined {
    if (this.#samples + this.#samplesBefore < samplesNeeded) return undefined
    const skew = Math.min(this.#smallest, this.#smallestBefore)
    if (Math.abs(skew) < worthAWarning || at - this.#warnedAt < betweenWarnings) return undefined
    this.#warnedAt = at
    return skew
  }

  #turnWindow(at: number): void {
    // A wall clock set back would otherwise keep this window open until it has caught up.
    if (at < this.#windowStart) this.#windowStart = at
    const age = at - this.#windowStart
    if (age < windowLength) return
    const isRecent = age < 2 * windowLength
    this.#smallestBefore = isRecent ? this.#smallest : Infinity
    this.#samplesBefore = isRecent ? this.#samples : 0
    this.#smallest = Infinity
    this.#samples = 0
    this.#windowStart = at
  }
}
