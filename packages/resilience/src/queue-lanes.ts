import { type Lane, type LaneName, Level, paid } from './queue-level.ts'
import type { Order, Place } from './queue-line.ts'

/** What all lower priorities together are guaranteed of the slots while a higher one wants them all. */
const lowerShare = 0.1

// Priorities that nobody uses are forgotten once there are more than this.
const manyLevels = 8

/** Priorities told apart at a time: every arrival looks at all of them. */
const mostLevels = 32

/**
 * Everybody who waits: by priority, in there by class, in there in order. Knows whose turn it is, and how much work is
 * done before the turn of anybody who might join.
 */
export class Lanes<Member extends Place<Member> & { readonly lane: Lane<Member> }> {
  /** The least number first. */
  #levels: Level<Member>[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Milliseconds of work that wait. */
  get work(): number {
    return this.#levels.reduce((work, level) => work + level.work, 0)
  }

  laneOf({ priority, name, now }: { priority: number; name: LaneName; now: number }): Lane<Member> {
    return this.#levelOf(priority, now).laneOf(name, now)
  }

  join(member: Member): void {
    member.lane.line.join(member)
    this.#size += 1
  }

  leave(member: Member): void {
    member.lane.line.leave(member)
    this.#size -= 1
  }

  /** Whose turn it is. */
  next(): Member | undefined {
    let turn: Level<Member> | undefined
    for (const level of this.#levels) {
      if (!level.waiting) continue
      if (turn === undefined || level.credit > Math.max(0, turn.credit)) turn = level
    }
    return turn?.next()?.line.first
  }

  /** Milliseconds of work that are done before the turn of such a place: in order, or earlier if its lane is owed some. */
  workAhead(place: Order, lane: Lane<Member>, now: number): number {
    const { level } = lane
    let above = 0
    let contested = false
    for (const other of this.#levels) {
      if (other.priority >= level.priority) break
      above += other.work
      contested ||= other.wants(now)
    }
    const before = level.workBefore(place)
    const inOrder = above + before
    const owed = contested
      ? (before - level.credit) / this.#guaranteedTo(level, now)
      : (lane.line.workBefore(place) - lane.credit) / level.guaranteedTo(lane, now)
    return Math.max(0, Math.min(inOrder, owed))
  }

  /** Books slot time, in milliseconds, that somebody of a lane has got; negative if it has given some back. */
  book(lane: Lane<Member>, slotTime: number, now: number): void {
    lane.level.book(lane, slotTime, now)
    if (this.#levels.length === 1) return
    const [, ...lower] = this.#levels.filter((level) => level === lane.level || level.wants(now))
    for (const level of lower) {
      level.credit = Math.min(level.credit + (slotTime * lowerShare) / lower.length, level.largest)
    }
    if (lower.includes(lane.level)) lane.level.credit = paid(lane.level, slotTime)
  }

  #guaranteedTo(level: Level<Member>, now: number): number {
    const [, ...lower] = this.#levels.filter((each) => each === level || each.wants(now))
    return lowerShare / Math.max(1, lower.length)
  }

  #levelOf(priority: number, now: number): Level<Member> {
    const known = this.#levels.find((level) => level.priority === priority)
    if (known !== undefined) {
      if (!known.wants(now)) known.credit = Math.min(known.credit, 0)
      return known
    }
    const kept =
      this.#levels.length < manyLevels ? this.#levels : this.#levels.filter((level) => level.wants(now))
    if (kept.length >= mostLevels) return nearestOf(kept, priority)
    const level = new Level<Member>(priority)
    this.#levels = [...kept, level].sort((one, other) => one.priority - other.priority)
    return level
  }
}

function nearestOf<Member extends Place<Member>>(
  levels: readonly Level<Member>[],
  priority: number,
): Level<Member> {
  return levels.reduce((nearest, level) =>
    Math.abs(level.priority - priority) < Math.abs(nearest.priority - priority) ? level : nearest,
  )
}
