/** Things by key, at most so many: a new one takes the place of one that was not asked for lately. */
export class RecentMap<K, V> {
  readonly #most: number
  readonly #held = new Map<K, { readonly value: V; isUsed: boolean }>()

  constructor(most: number) {
    this.#most = most
  }

  /** The one of that key, made if there is none. */
  of(key: K, make: () => V): V {
    const held = this.#held.get(key)
    if (held !== undefined) {
      held.isUsed = true
      return held.value
    }
    if (this.#held.size >= this.#most) this.#forgetOne()
    const value = make()
    this.#held.set(key, { value, isUsed: false })
    return value
  }

  values(): V[] {
    return Array.from(this.#held.values(), ({ value }) => value)
  }

  // from the longest held on, who was asked for since goes to the back of the line once: whatever names come, neither
  // a use nor a new name costs a walk over all of them
  #forgetOne(): void {
    for (const [key, held] of this.#held) {
      this.#held.delete(key)
      if (!held.isUsed) return
      held.isUsed = false
      this.#held.set(key, held)
    }
  }
}
