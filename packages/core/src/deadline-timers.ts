import { type Clock, type ClockTimer, systemClock } from './clock.ts'
import type { Deadline } from './deadline.ts'
import { NumberHeap } from './number-heap.ts'
import { TimerBucket } from './timer-bucket.ts'

/** What timers ask of those they wake. */
export interface TimerOwner<Entry extends object> {
  /** When to fire it, in monotonic milliseconds; always the same. */
  momentOf(entry: Entry): number
  /** Told where it is, by which it is taken out: when it is added, and again when its moment comes nearer. */
  place(entry: Entry, bucket: TimerBucket<Entry>, place: number): void
  /** Called once, not before its moment; by then it is out. */
  fire(entry: Entry): void
}

/**
 * One clock's timers: a bucket for each moment, one native timer for the earliest. Adding and removing cost the same
 * with a thousand entries as with a million, since the heap orders moments and not entries; see bench/core.
 */
export class DeadlineTimers<Entry extends object> {
  readonly #clock: Clock
  readonly #owner: TimerOwner<Entry>
  readonly #buckets = new Map<number, TimerBucket<Entry>>()
  readonly #moments = new NumberHeap()
  readonly #wake = (): void => this.#fireDue()
  #native: ClockTimer | undefined
  #wakeAt = Infinity
  #held = 0

  constructor(clock: Clock, owner: TimerOwner<Entry>) {
    this.#clock = clock
    this.#owner = owner
  }

  /** Fires the entry at its moment, unless it is taken out of its bucket before; `now` is a late reading of the clock. */
  add(entry: Entry, now: number): void {
    const bucket = this.#bucketFor(this.#owner.momentOf(entry), now)
    this.#owner.place(entry, bucket, bucket.add(entry))
  }

  /** Keeps the process alive for an entry, until `release`. */
  hold(): void {
    this.#held += 1
    if (this.#held === 1) this.#native?.hold()
  }

  release(): void {
    this.#held -= 1
    if (this.#held === 0) this.#native?.release()
  }

  #bucketFor(at: number, now: number): TimerBucket<Entry> {
    const moment = bucketMoment(at, now)
    let bucket = this.#buckets.get(moment)
    if (bucket === undefined) {
      bucket = new TimerBucket()
      this.#buckets.set(moment, bucket)
      this.#moments.push(moment)
    }
    if (moment < this.#wakeAt) this.#schedule(moment)
    return bucket
  }

  #schedule(moment: number): void {
    this.#native?.cancel()
    this.#wakeAt = moment
    // setTimeout counts whole milliseconds and may be up to one early
    const delay = Math.max(1, Math.ceil(moment - this.#clock.now()))
    this.#native = this.#clock.wakeAfter(delay, this.#wake)
    if (this.#held > 0) this.#native.hold()
  }

  #fireDue(): void {
    this.#native = undefined
    this.#wakeAt = Infinity
    const now = this.#clock.now()
    for (let moment = this.#moments.peek(); moment !== undefined; moment = this.#moments.peek()) {
      const bucket = this.#buckets.get(moment)
      // what was removed leaves its bucket empty: not worth a wake-up
      if (moment > now && bucket !== undefined && !bucket.isEmpty) break
      this.#moments.pop()
      this.#buckets.delete(moment)
      if (bucket !== undefined) this.#empty(bucket, now)
    }
    const next = this.#moments.peek()
    if (next !== undefined && next < this.#wakeAt) this.#schedule(next)
  }

  #empty(bucket: TimerBucket<Entry>, now: number): void {
    for (const entry of bucket.drain()) {
      if (this.#owner.momentOf(entry) > now) this.add(entry, now)
      else this.#owner.fire(entry)
    }
  }
}

/**
 * The moment under which an entry is filed: its own, rounded up to a millisecond, while it is near; coarser and rounded
 * down, to be filed anew then, while it is far. So the number of buckets stays in the thousands whatever the budgets.
 */
function bucketMoment(at: number, now: number): number {
  const distance = at - now
  if (distance < 4096) return Math.ceil(at)
  const grain = distance < 2 ** 18 ? 64 : distance < 2 ** 24 ? 4096 : 2 ** 18
  return Math.floor(at / grain) * grain
}

let systemTimers: DeadlineTimers<Deadline> | undefined
const timersByClock = new WeakMap<Clock, DeadlineTimers<Deadline>>()

/** The timers of all deadlines on a clock, made on first use. */
export function timersOf(clock: Clock, owner: TimerOwner<Deadline>): DeadlineTimers<Deadline> {
  if (clock === systemClock) return (systemTimers ??= new DeadlineTimers(clock, owner))
  let timers = timersByClock.get(clock)
  if (timers === undefined) {
    timers = new DeadlineTimers(clock, owner)
    timersByClock.set(clock, timers)
  }
  return timers
}
