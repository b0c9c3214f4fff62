const none = -1

/**
 * Lists whose links stand in typed arrays: with a million entries in them garbage collection has a third less to do than
 * with links between objects, and to take one out touches nobody else's memory; see bench/core. Slots and lists are numbers.
 */
export class SlotLists<Item> {
  readonly #items: (Item | undefined)[] = []
  #next = new Int32Array(64)
  #previous = new Int32Array(64)
  /** The first of the slots that were given back, linked through `#next`. */
  #free = none

  /** A new list, empty: a slot that stands between its last and its first item. */
  open(): number {
    const list = this.#take(undefined)
    this.#next[list] = this.#previous[list] = list
    return list
  }

  /** Gives an empty list's slot back. */
  close(list: number): void {
    this.#give(list)
  }

  /** Puts an item first; returns its slot, by which it is removed. */
  push(list: number, item: Item): number {
    const slot = this.#take(item)
    const after = this.#next[list] ?? list
    this.#next[slot] = after
    this.#previous[slot] = list
    this.#previous[after] = this.#next[list] = slot
    return slot
  }

  first(list: number): Item | undefined {
    return this.#items[this.#next[list] ?? list]
  }

  remove(slot: number): void {
    const after = this.#next[slot] ?? none
    const before = this.#previous[slot] ?? none
    this.#next[before] = after
    this.#previous[after] = before
    this.#give(slot)
  }

  #take(item: Item | undefined): number {
    let slot = this.#free
    if (slot === none) {
      slot = this.#items.push(item) - 1
      if (slot === this.#next.length) this.#grow()
    } else {
      this.#free = this.#next[slot] ?? none
      this.#items[slot] = item
    }
    return slot
  }

  #give(slot: number): void {
    this.#items[slot] = undefined
    this.#next[slot] = this.#free
    this.#free = slot
  }

  #grow(): void {
    this.#next = twiceAsLong(this.#next)
    this.#previous = twiceAsLong(this.#previous)
  }
}

function twiceAsLong(links: Int32Array): Int32Array<ArrayBuffer> {
  const longer = new Int32Array(links.length * 2)
  longer.set(links)
  return longer
}
