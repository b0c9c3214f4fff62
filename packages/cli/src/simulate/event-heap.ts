/** Something that happens at a moment of virtual time, in milliseconds. */
export interface Event {
  readonly at: number
  /** Orders what happens at the same moment: who asked first comes first. */
  readonly order: number
}

/** A binary heap of events, the next one first. */
export class EventHeap<Item extends Event> {
  readonly #items: Item[] = []

  get size(): number {
    return this.#items.length
  }

  push(item: Item): void {
    const items = this.#items
    let index = items.length
    items.push(item)
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = items[above]
      if (parent === undefined || isBefore(parent, item)) break
      items[index] = parent
      index = above
    }
    items[index] = item
  }

  pop(): Item | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (last !== undefined && items.length > 0) this.#sink(last)
    return first
  }

  #sink(item: Item): void {
    const items = this.#items
    let index = 0
    for (;;) {
      const left = items[2 * index + 1]
      if (left === undefined) break
      const right = items[2 * index + 2]
      const rightFirst = right !== undefined && isBefore(right, left)
      const below = rightFirst ? right : left
      if (isBefore(item, below)) break
      items[index] = below
      index = 2 * index + (rightFirst ? 2 : 1)
    }
    items[index] = item
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.at === other.at ? one.order < other.order : one.at < other.at
}
