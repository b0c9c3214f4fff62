/** A source of chance that a seed repeats: mulberry32, good enough to draw plans from. */
export class Chance {
  #state

  constructor(seed) {
    this.#state = seed >>> 0
  }

  /** From 0, below 1. */
  fraction() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number of that range, both ends included. */
  between(least, most) {
    return least + Math.floor(this.fraction() * (most - least + 1))
  }

  oneOf(values) {
    return values[this.between(0, values.length - 1)]
  }

  /** Whether something happens that does so in that share of cases. */
  happens(share) {
    return this.fraction() < share
  }

  /** One of the names, each as often as its weight says. */
  weighed(weights) {
    const names = Object.keys(weights)
    let left = this.fraction() * names.reduce((sum, name) => sum + weights[name], 0)
    return names.find((name) => (left -= weights[name]) < 0) ?? names.at(-1)
  }

  /** An independent source, so that what is drawn from one does not shift what is drawn from the other. */
  fork() {
    return new Chance(Math.floor(this.fraction() * 2 ** 32))
  }
}
