import type { Clock, ClockTimer } from './clock.ts'
import { systemClock } from './clock.ts'
import { NumberHeap } from './number-heap.ts'
import { SlotLists } from './slot-lists.ts'

/** Something to be woken at a moment of a clock. */
export abstract class TimedEntry {
  /** Monotonic milliseconds. */
  readonly at: number
  /** Where its timers keep it; negative while they do not. */
  slot = -1
  held = false

  constructor(at: number) {
    this.at = at
  }

  /** Called once, not before `at`. */
  abstract fire(): void
}

/**
 * One clock's timers: a bucket for each moment, one native timer for the earliest. Adding and removing cost the same
 * with a thousand entries as with a million, since the heap orders moments and not entries; see bench/core.
 */
export class DeadlineTimers {
  readonly #clock: Clock
  readonly #buckets = new Map<number, number>()
  readonly #entries = new SlotLists<TimedEntry>()
  readonly #moments = new NumberHeap()
  readonly #wake = (): void => this.#fireDue()
  #native: ClockTimer | undefined
  #wakeAt = Infinity
  #held = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Fires the entry at its moment; `now` is a reading of the clock just taken, which costs as much as all the rest. */
  add(entry: TimedEntry, now: number = this.#clock.now()): void {
    this.#file(entry, now)
  }

  /** Keeps the process alive until the entry fires or is removed. */
  hold(entry: TimedEntry): void {
    if (entry.held || entry.slot < 0) return
    entry.held = true
    this.#held += 1
    if (this.#held === 1) this.#native?.hold()
  }

  remove(entry: TimedEntry): void {
    this.#takeOut(entry)
    this.#release(entry)
  }

  #takeOut(entry: TimedEntry): void {
    if (entry.slot < 0) return
    this.#entries.remove(entry.slot)
    entry.slot = -1
  }

  #release(entry: TimedEntry): void {
    if (!entry.held) return
    entry.held = false
    this.#held -= 1
    if (this.#held === 0) this.#native?.release()
  }

  #file(entry: TimedEntry, now: number): void {
    const moment = bucketMoment(entry.at, now)
    let bucket = this.#buckets.get(moment)
    if (bucket === undefined) {
      bucket = this.#entries.open()
      this.#buckets.set(moment, bucket)
      this.#moments.push(moment)
    }
    entry.slot = this.#entries.push(bucket, entry)
    if (moment < this.#wakeAt) this.#schedule(moment, now)
  }

  #schedule(moment: number, now: number): void {
    this.#native?.cancel()
    this.#wakeAt = moment
    // setTimeout counts whole milliseconds and may be up to one early
    this.#native = this.#clock.wakeAfter(Math.max(1, Math.ceil(moment - now)), this.#wake)
    if (this.#held > 0) this.#native.hold()
  }

  #fireDue(): void {
    this.#native = undefined
    this.#wakeAt = Infinity
    const now = this.#clock.now()
    for (let moment = this.#moments.peek(); moment !== undefined; moment = this.#moments.peek()) {
      const bucket = this.#buckets.get(moment)
      // what was removed leaves its bucket empty: not worth a wake-up
      if (moment > now && bucket !== undefined && this.#entries.first(bucket) !== undefined) break
      this.#moments.pop()
      this.#buckets.delete(moment)
      if (bucket !== undefined) this.#empty(bucket, now)
    }
    const next = this.#moments.peek()
    if (next !== undefined && next < this.#wakeAt) this.#schedule(next, now)
  }

  #empty(bucket: number, now: number): void {
    const entries = this.#entries
    for (let entry = entries.first(bucket); entry !== undefined; entry = entries.first(bucket)) {
      this.#takeOut(entry)
      if (entry.at > now) {
        this.#file(entry, now)
        continue
      }
      this.#release(entry)
      entry.fire()
    }
    entries.close(bucket)
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

const systemTimers = new DeadlineTimers(systemClock)
const timersByClock = new WeakMap<Clock, DeadlineTimers>()

/** The timers of a clock, made on first use. */
export function timersOf(clock: Clock): DeadlineTimers {
  if (clock === systemClock) return systemTimers
  let timers = timersByClock.get(clock)
  if (timers === undefined) {
    timers = new DeadlineTimers(clock)
    timersByClock.set(clock, timers)
  }
  return timers
}
