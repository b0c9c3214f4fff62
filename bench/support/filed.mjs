const bySecond = Array.from({ length: 64 }, () => [])

/**
 * The least that something can be which is to be ended at a moment: an object, filed by the second in which that lies, and
 * taken out once it is over. It is never ended.
 */
export class Filed {
  isOver = false
  reason = undefined
  place = 0

  constructor(left) {
    this.endsAt = performance.now() + left
    const list = this.#list
    this.place = list.length
    list.push(this)
  }

  get #list() {
    return bySecond[Math.floor(this.endsAt / 1_000) % bySecond.length]
  }

  over() {
    if (this.isOver) return
    this.isOver = true
    const list = this.#list
    const last = list.pop()
    if (last === this) return
    list[this.place] = last
    last.place = this.place
  }
}
