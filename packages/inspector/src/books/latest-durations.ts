const kept = 256

/** The latest 256 durations and their quantiles. */
export class LatestDurations {
  // grows with what comes: most operations of a short-lived process never fill it
  readonly #durations: number[] = []
  #next = 0
  #sorted: Float64Array | undefined

  add(duration: number): void {
    this.#durations[this.#next] = duration
    this.#next = (this.#next + 1) % kept
    this.#sorted = undefined
  }

  /** The least duration that at least this share, 0 to 1, did not exceed; `null` before the first. */
  quantile(share: number): number | null {
    this.#sorted ??= Float64Array.from(this.#durations).sort()
    return this.#sorted[Math.max(0, Math.ceil(share * this.#sorted.length) - 1)] ?? null
  }
}
