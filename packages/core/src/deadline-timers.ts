import { type Clock, type ClockTimer, systemClock } from './clock.ts'
import type { Deadline } from './deadline.ts'
import { NumberHeap } from './number-heap.ts'
import { noSlot, SlotLists } from './slot-lists.ts'

/** What timers ask of those they wake. */
export interface TimerOwner<Entry> {
  /** When to fire it, in monotonic milliseconds; always the same. */
  momentOf(entry: Entry): number
  /** Called once, not before its moment. Its slot is another's from then on. */
  fire(entry: Entry): void
}

/**
 * One clock's timers: a bucket for each moment, one native timer for the earliest. Adding and removing cost the same
 * with a thousand entries as with a million, since the heap orders moments and not entries; see bench/core.
 */
export class DeadlineTimers<Entry> {
  readonly #clock: Clock
  readonly #owner: TimerOwner<Entry>
  readonly #buckets = new Map<number, number>()
  readonly #entries = new SlotLists<Entry>()
  readonly #moments = new NumberHeap()
  readonly #wake = (): void => this.#fireDue()
  #native: ClockTimer | undefined
  #wakeAt = Infinity
  /** 1 for each slot that is held. */
  #held = new Uint8Array(64)
  #heldCount = 0

  constructor(clock: Clock, owner: TimerOwner<Entry>) {
    this.#clock = clock
    this.#owner = owner
  }

  /** Fires the entry at its moment; returns the slot by which it is held and removed. `now` is a late reading of the clock. */
  add(entry: Entry, now: number): number {
    return this.#entries.push(this.#bucketFor(this.#owner.momentOf(entry), now), entry)
  }

  /** Keeps the process alive until the entry in the slot fires or is removed. */
  hold(slot: number): void {
    if (this.#held[slot] === 1) return
    if (slot >= this.#held.length) this.#held = longer(this.#held, slot)
    this.#held[slot] = 1
    this.#heldCount += 1
    if (this.#heldCount === 1) this.#native?.hold()
  }

  /** To be called once for each that has not fired. */
  remove(slot: number): void {
    this.#entries.remove(slot)
    if (this.#held[slot] !== 1) return
    this.#held[slot] = 0
    this.#heldCount -= 1
    if (this.#heldCount === 0) this.#native?.release()
  }

  #bucketFor(at: number, now: number): number {
    const moment = bucketMoment(at, now)
    let bucket = this.#buckets.get(moment)
    if (bucket === undefined) {
      bucket = this.#entries.open()
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
    if (this.#heldCount > 0) this.#native.hold()
  }

  #fireDue(): void {
    this.#native = undefined
    this.#wakeAt = Infinity
    const now = this.#clock.now()
    for (let moment = this.#moments.peek(); moment !== undefined; moment = this.#moments.peek()) {
      const bucket = this.#buckets.get(moment)
      // what was removed leaves its bucket empty: not worth a wake-up
      if (moment > now && bucket !== undefined && this.#entries.first(bucket) !== noSlot) break
      this.#moments.pop()
      this.#buckets.delete(moment)
      if (bucket !== undefined) this.#empty(bucket, now)
    }
    const next = this.#moments.peek()
    if (next !== undefined && next < this.#wakeAt) this.#schedule(next)
  }

  #empty(bucket: number, now: number): void {
    const entries = this.#entries
    for (let slot = entries.first(bucket); slot !== noSlot; slot = entries.first(bucket)) {
      const entry = entries.at(slot)
      if (entry === undefined) break
      const at = this.#owner.momentOf(entry)
      if (at > now) {
        entries.move(slot, this.#bucketFor(at, now))
        continue
      }
      this.remove(slot)
      this.#owner.fire(entry)
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

function longer(held: Uint8Array, slot: number): Uint8Array<ArrayBuffer> {
  const grown = new Uint8Array(slot * 2)
  grown.set(held)
  return grown
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
