// Of the calls that a healthy service answers, one of ten at most is then cut off and counted against it: far from what
// opens a circuit.
const share = 0.9
// A few seconds of traffic in memory of half a kilobyte.
const remembered = 64
const enough = 10
// While nothing is known: more than a caller has left who is about to give up anyway.
const untaught = 100

/**
 * How long a call must have been granted for its running out of time to say something about what was called, rather
 * than about its caller. Learned from successes alone: in an outage in which everything is cut off it stays as it is.
 */
export class Patience {
  readonly #fixed: number | undefined
  readonly #spent: number[] = []
  #next = 0

  constructor(fixed: number | undefined) {
    this.#fixed = fixed
  }

  /** Takes note of a successful call's milliseconds. */
  learn(spent: number): void {
    this.#spent[this.#next] = spent
    this.#next = (this.#next + 1) % remembered
  }

  /** Milliseconds. */
  current(): number {
    if (this.#fixed !== undefined) return this.#fixed
    if (this.#spent.length < enough) return untaught
    const sorted = this.#spent.toSorted((a, b) => a - b)
    return sorted[Math.ceil(share * sorted.length) - 1] ?? untaught
  }
}
