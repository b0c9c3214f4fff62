const something = {}

/** What a deadline holds: as many fields, and as many numbers that are not whole. */
export class LikeDeadline {
  clock = something
  parent = undefined
  work = undefined
  origin = undefined
  ending = undefined
  state = 'open'
  list = undefined
  place = 0
  watcher = something
  links = undefined
  ledger = undefined

  constructor(startedAt, budget) {
    this.budget = budget
    this.startedAt = startedAt
    this.endsAt = startedAt + budget
  }

  /** The list of the second in which it ends; taken out by its place. No order among seconds, no timer, no end. */
  file() {
    const list = (lists[Math.floor(this.endsAt / 1_000)] ??= { places: [], free: [] })
    this.list = list
    this.place = list.free.pop() ?? list.places.length
    list.places[this.place] = this
  }

  takeOut() {
    this.state = 'settled'
    this.list.places[this.place] = undefined
    this.list.free.push(this.place)
  }
}

const lists = []
