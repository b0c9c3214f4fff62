/** Counts what happened lately: in the newest `slices` slices of time, the one that has just begun included. */
export class SlidingCount {
  readonly #slice: number
  readonly #counts: number[]
  #newest = 0
  #total = 0

  /** A slice is so many milliseconds long. */
  constructor({ slice, slices }: { readonly slice: number; readonly slices: number }) {
    this.#slice = slice
    this.#counts = Array.from({ length: slices }, () => 0)
  }

  add(now: number): void {
    this.#turn(now)
    const place = this.#newest % this.#counts.length
    this.#counts[place] = (this.#counts[place] ?? 0) + 1
    this.#total += 1
  }

  /** Forgets everything. */
  clear(): void {
    this.#counts.fill(0)
    this.#total = 0
  }

  total(now: number): number {
    this.#turn(now)
    return this.#total
  }

  #turn(now: number): void {
    const newest = Math.floor(now / this.#slice)
    if (newest <= this.#newest) return
    const slices = this.#counts.length
    for (let slice = Math.max(this.#newest + 1, newest - slices + 1); slice <= newest; slice += 1) {
      this.#total -= this.#counts[slice % slices] ?? 0
      this.#counts[slice % slices] = 0
    }
    this.#newest = newest
  }
}
