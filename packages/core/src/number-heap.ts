/** A binary heap of numbers, least first. */
export class NumberHeap {
  readonly #items: number[] = []

  peek(): number | undefined {
    return this.#items[0]
  }

  push(value: number): void {
    const items = this.#items
    let index = items.length
    items.push(value)
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = items[above] ?? -Infinity
      if (parent <= value) break
      items[index] = parent
      index = above
    }
    items[index] = value
  }

  pop(): number | undefined {
    const items = this.#items
    const least = items[0]
    const last = items.pop()
    if (last === undefined || items.length === 0) return least
    let index = 0
    for (;;) {
      const left = 2 * index + 1
      if (left >= items.length) break
      const leftValue = items[left] ?? Infinity
      const rightValue = items[left + 1] ?? Infinity
      const below = rightValue < leftValue ? left + 1 : left
      const value = Math.min(leftValue, rightValue)
      if (value >= last) break
      items[index] = value
      index = below
    }
    items[index] = last
    return least
  }
}
