import { Line, type Order, type Place } from './queue-line.ts'

/** Half of its fair share is what each class of work shall have; a bit more, since it comes in whole pieces of work. */
const guaranteed = 0.6

/** Classes told apart in one priority; those that come on top are one class together. */
const mostLanes = 64
const others = Symbol('others')

/** What an earlier arrival counts for less with each one that comes: demand is that of the last few hundred. */
const fading = 1 + 1 / 256

/** What a class is called: by its user, or by what is common to its work. */
export type LaneName = string | number | symbol

/** A large arrival is forgotten, by half, after seven smaller ones. */
const shrinking = 0.9

/** Those of one class who wait, inside one priority. */
export class Lane<Member extends Place<Member>> {
  readonly line: Line<Member> = new Line()
  readonly level: Level<Member>
  /** Milliseconds of slot time it is owed; below 0 after it has had some. */
  credit = 0
  /** Slot time it asked for of late, in a unit of its level's. */
  demand = 0
  /** The largest work that is asked for, of late. */
  largest = 0
  /** When the last of those who were refused would have left. */
  wantedUntil: number = -Infinity

  constructor(level: Level<Member>) {
    this.level = level
  }

  wants(now: number): boolean {
    return this.line.size > 0 || this.wantedUntil > now
  }
}

/** The classes of one priority, each with its own line. */
export class Level<Member extends Place<Member>> {
  readonly priority: number
  /** Milliseconds of slot time it is owed while a higher priority wants all the slots. */
  credit = 0
  largest = 0
  readonly #lanes = new Map<LaneName, Lane<Member>>()
  #unit = 1

  constructor(priority: number) {
    this.priority = priority
  }

  /** Milliseconds of work that wait here. */
  get work(): number {
    let work = 0
    for (const lane of this.#lanes.values()) work += lane.line.work
    return work
  }

  get waiting(): boolean {
    for (const lane of this.#lanes.values()) if (lane.line.size > 0) return true
    return false
  }

  wants(now: number): boolean {
    for (const lane of this.#lanes.values()) if (lane.wants(now)) return true
    return false
  }

  /** Where a class waits. */
  laneOf(name: LaneName, now: number): Lane<Member> {
    const lane = this.#find(name, now)
    // what nobody wanted is not saved up
    if (!lane.wants(now)) lane.credit = Math.min(lane.credit, 0)
    return lane
  }

  /** Counts what a lane asks for, whether or not it will get it. */
  noteDemand(lane: Lane<Member>, work: number): void {
    lane.largest = Math.max(work, lane.largest * shrinking)
    this.largest = Math.max(work, this.largest * shrinking)
    lane.demand += work * this.#unit
    this.#unit *= fading
    if (this.#unit < 1e100) return
    for (const each of this.#lanes.values()) each.demand /= this.#unit
    this.#unit = 1
  }

  /** Milliseconds of work before a place, over all classes. */
  workBefore(place: Order): number {
    let work = 0
    for (const lane of this.#lanes.values()) work += lane.line.workBefore(place)
    return work
  }

  /** The part of the slots that a lane is guaranteed as long as it wants them. */
  guaranteedTo(lane: Lane<Member>, now: number): number {
    return guaranteed * fairShare(lane, this.#demands(now, lane))
  }

  /** Whose turn it is: of the lanes that are owed slot time the one owed the most; else who stands first in all lines. */
  next(): Lane<Member> | undefined {
    let turn: Lane<Member> | undefined
    let rank = Infinity
    let owed = 0
    for (const lane of this.#lanes.values()) {
      const first = lane.line.first
      if (first === undefined) continue
      const credit = Math.max(0, lane.credit)
      if (turn !== undefined && (credit < owed || (credit === owed && first.rank >= rank))) continue
      turn = lane
      rank = first.rank
      owed = credit
    }
    return turn
  }

  /** Books slot time that a lane has got, or gives back if it is negative: every lane that wants some earns its part of it. */
  book(lane: Lane<Member>, slotTime: number, now: number): void {
    const demands = this.#demands(now, undefined)
    for (const each of this.#lanes.values()) {
      if (!each.wants(now)) continue
      each.credit = Math.min(each.credit + slotTime * guaranteed * fairShare(each, demands), each.largest)
    }
    lane.credit = paid(lane, slotTime)
  }

  #demands(now: number, besides: Lane<Member> | undefined): Demands {
    let lanes = 0
    let total = 0
    for (const lane of this.#lanes.values()) {
      if (lane !== besides && !lane.wants(now)) continue
      lanes += 1
      total += lane.demand
    }
    return { lanes, total }
  }

  #find(name: LaneName, now: number): Lane<Member> {
    const known = this.#lanes.get(name)
    if (known !== undefined) return known
    if (this.#lanes.size >= mostLanes) this.#dropIdle(now)
    const key = this.#lanes.size < mostLanes ? name : others
    let lane = this.#lanes.get(key)
    if (lane === undefined) {
      lane = new Lane(this)
      this.#lanes.set(key, lane)
    }
    return lane
  }

  #dropIdle(now: number): void {
    for (const [name, lane] of this.#lanes) if (!lane.wants(now)) this.#lanes.delete(name)
  }
}

/** What is left of a credit. Nobody runs up a debt of more than the largest work, so that idle slots cost nobody later. */
export function paid({ credit, largest }: Account, slotTime: number): number {
  return Math.max(credit - slotTime, -largest)
}

interface Account {
  readonly credit: number
  readonly largest: number
}

interface Demands {
  readonly lanes: number
  readonly total: number
}

/**
 * The part of the slots that is fair for a lane among those that want some: an equal part, or its part of what is asked
 * for where that is more. Each of the two adds up to 1, so that half of the larger one can be had by all.
 */
function fairShare(lane: { readonly demand: number }, { lanes, total }: Demands): number {
  return Math.max(1 / Math.max(1, lanes), total > 0 ? lane.demand / total : 0)
}
