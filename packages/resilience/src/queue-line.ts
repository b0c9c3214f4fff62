/** What decides who stands before whom. */
export interface Order {
  readonly rank: number
  readonly arrival: number
}

/** Somebody's place in a line. What comes first has the least rank, and of two equal ranks the one that came first. */
export abstract class Place<Member> {
  readonly rank: number
  /** Counts up with every arrival. */
  readonly arrival: number
  /** Milliseconds of work that it brings. */
  readonly work: number
  /** The work of this place and of all below it in the tree. */
  sum: number
  /** Its height in the tree is drawn by lot: that keeps the tree flat whatever the order of arrival. */
  lot = 0
  earlier: Member | undefined
  later: Member | undefined

  constructor({
    rank,
    arrival,
    work,
  }: {
    readonly rank: number
    readonly arrival: number
    readonly work: number
  }) {
    this.rank = rank
    this.arrival = arrival
    this.work = work
    this.sum = work
  }
}

/**
 * A line of places in the order of their ranks that knows how much work stands before any of them: a treap (Seidel and
 * Aragon, 1996). Joining, leaving from anywhere and asking take logarithmic time; see bench/queue.
 */
export class Line<Member extends Place<Member>> {
  #root: Member | undefined
  #size = 0
  #seed = 0x9e3779b9

  get size(): number {
    return this.#size
  }

  /** Milliseconds of work of all who stand here. */
  get work(): number {
    return this.#root?.sum ?? 0
  }

  get first(): Member | undefined {
    let place = this.#root
    while (place?.earlier !== undefined) place = place.earlier
    return place
  }

  get last(): Member | undefined {
    let place = this.#root
    while (place?.later !== undefined) place = place.later
    return place
  }

  join(member: Member): void {
    member.lot = this.#draw()
    this.#size += 1
    let above: Member | undefined
    let below = this.#root
    while (below !== undefined && below.lot <= member.lot) {
      below.sum += member.work
      above = below
      below = standsBefore(member, below) ? below.earlier : below.later
    }
    const [earlier, later] = split(below, member)
    member.earlier = earlier
    member.later = later
    addUp(member)
    this.#hang(member, above, member)
  }

  /** Takes out a member that stands here. */
  leave(member: Member): void {
    this.#size -= 1
    let above: Member | undefined
    let place = this.#root
    while (place !== undefined && place !== member) {
      place.sum -= member.work
      above = place
      place = standsBefore(member, place) ? place.earlier : place.later
    }
    this.#hang(merge(member.earlier, member.later), above, member)
    member.earlier = member.later = undefined
  }

  /** Milliseconds of work that stand before such a place, whether or not anybody has it. */
  workBefore(place: Order): number {
    let before = 0
    let at = this.#root
    while (at !== undefined) {
      if (standsBefore(at, place)) {
        before += at.work + (at.earlier?.sum ?? 0)
        at = at.later
      } else at = at.earlier
    }
    return before
  }

  #hang(place: Member | undefined, above: Member | undefined, inTheRoomOf: Order): void {
    if (above === undefined) this.#root = place
    else if (standsBefore(inTheRoomOf, above)) above.earlier = place
    else above.later = place
  }

  /** Marsaglia's xorshift, of 32 bits. */
  #draw(): number {
    let seed = this.#seed
    seed ^= seed << 13
    seed ^= seed >>> 17
    seed ^= seed << 5
    this.#seed = seed
    return seed
  }
}

function standsBefore(one: Order, other: Order): boolean {
  return one.rank < other.rank || (one.rank === other.rank && one.arrival < other.arrival)
}

function addUp<Member extends Place<Member>>(place: Member): void {
  place.sum = place.work + (place.earlier?.sum ?? 0) + (place.later?.sum ?? 0)
}

function split<Member extends Place<Member>>(
  place: Member | undefined,
  at: Order,
): [earlier: Member | undefined, later: Member | undefined] {
  if (place === undefined) return [undefined, undefined]
  if (standsBefore(place, at)) {
    const [earlier, later] = split(place.later, at)
    place.later = earlier
    addUp(place)
    return [place, later]
  }
  const [earlier, later] = split(place.earlier, at)
  place.earlier = later
  addUp(place)
  return [earlier, place]
}

function merge<Member extends Place<Member>>(
  earlier: Member | undefined,
  later: Member | undefined,
): Member | undefined {
  if (earlier === undefined) return later
  if (later === undefined) return earlier
  if (earlier.lot <= later.lot) {
    earlier.later = merge(earlier.later, later)
    addUp(earlier)
    return earlier
  }
  later.earlier = merge(earlier, later.earlier)
  addUp(later)
  return later
}
