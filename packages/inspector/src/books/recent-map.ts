/** Things by key, at most so many: a new one takes the place of the one that was asked for the longest ago. */
export class RecentMap<K, V> {
  readonly #most: number
  readonly #held = new Map<K, { value: V; used: number }>()
  #uses = 0

  constructor(most: number) {
    this.#most = most
  }

  /** The one of that key, made if there is none. */
  of(key: K, make: () => V): V {
    this.#uses += 1
    const held = this.#held.get(key)
    if (held !== undefined) {
      held.used = this.#uses
      return held.value
    }
    if (this.#held.size >= this.#most) this.#forgetOldest()
    const value = make()
    this.#held.set(key, { value, used: this.#uses })
    return value
  }

  values(): V[] {
    return Array.from(this.#held.values(), ({ value }) => value)
  }

  // looked for only where a key is new: touching one on every use would cost every use
  #forgetOldest(): void {
    let oldest: K | undefined
    let least = Infinity
    for (const [key, { used }] of this.#held) {
      if (used >= least) continue
      least = used
      oldest = key
    }
    if (oldest !== undefined) this.#held.delete(oldest)
  }
}
