const nowhere = -1

/**
 * Entries that fire at the same moment, each at a place by which it is taken out again. A place that was given back holds
 * the number of the next free one: nothing but that place is touched, which is what counts with a million entries, all of
 * them far from the processor's caches; see bench/core.
 */
export class TimerBucket<Entry extends object> {
  readonly #places: (Entry | number)[] = []
  #free = nowhere
  #taken = 0

  get isEmpty(): boolean {
    return this.#taken === 0
  }

  /** Returns the entry's place. */
  add(entry: Entry): number {
    this.#taken += 1
    const place = this.#free
    if (place === nowhere) return this.#places.push(entry) - 1
    this.#free = Number(this.#places[place])
    this.#places[place] = entry
    return place
  }

  /** To be called once for each that was added. */
  remove(place: number): void {
    this.#taken -= 1
    this.#places[place] = this.#free
    this.#free = place
  }

  /** Takes all out, one after another; others may be removed meanwhile. */
  *drain(): Generator<Entry> {
    for (const [place, entry] of this.#places.entries()) {
      if (typeof entry === 'number') continue
      this.remove(place)
      yield entry
    }
  }
}
