/** What stands for no slot. */
export const noSlot = -1

/**
 * Lists whose links stand in typed arrays: with a million entries in them garbage collection has a third less to do than
 * with links between objects, and to take one out touches nobody else's memory; see bench/core. Slots and lists are numbers.
 */
export class SlotLists<Item> {
  readonly #items: (Item | undefined)[] = []
  #next = new Int32Array(64)
  #previous = new Int32Array(64)
  /** The first of the slots that were given back, linked through `#next`. */
  #free = noSlot

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
    this.#link(slot, list)
    return slot
  }

  /** Puts an item first in another list; it keeps its slot. */
  move(slot: number, list: number): void {
    this.#unlink(slot)
    this.#link(slot, list)
  }

  /** The slot of the first item, or `noSlot`. */
  first(list: number): number {
    const slot = this.#next[list] ?? list
    return slot === list ? noSlot : slot
  }

  at(slot: number): Item | undefined {
    return this.#items[slot]
  }

  remove(slot: number): void {
    this.#unlink(slot)
    this.#give(slot)
  }

  #link(slot: number, list: number): void {
    const after = this.#next[list] ?? list
    this.#next[slot] = after
    this.#previous[slot] = list
    this.#previous[after] = this.#next[list] = slot
  }

  #unlink(slot: number): void {
    const after = this.#next[slot] ?? noSlot
    const before = this.#previous[slot] ?? noSlot
    this.#next[before] = after
    this.#previous[after] = before
  }

  #take(item: Item | undefined): number {
    let slot = this.#free
    if (slot === noSlot) {
      slot = this.#items.push(item) - 1
      if (slot === this.#next.length) this.#grow()
    } else {
      this.#free = this.#next[slot] ?? noSlot
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
