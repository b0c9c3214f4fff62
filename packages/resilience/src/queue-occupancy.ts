import type { Estimates } from './queue-estimates.ts'
import { type Expectation, givenExpectation } from './queue-expectation.ts'
import type { HeldSlot } from './queue-slot.ts'

/** How much the slot time that ended last counts in what is typical. */
const newest = 1 / 16

/** The slots, and who holds them. */
export class Occupancy {
  readonly slots: number
  readonly #estimates: Estimates
  readonly #held = new Set<HeldSlot>()
  #taken = 0
  #typical = 0

  constructor(slots: number, estimates: Estimates) {
    this.slots = slots
    this.#estimates = estimates
  }

  get taken(): number {
    return this.#taken
  }

  get free(): number {
    return this.slots - this.#taken
  }

  /** Milliseconds for which a slot is held as a rule; 0 before any was. */
  get typical(): number {
    return this.#typical
  }

  /** Takes a slot, for which `hold` then says by whom. */
  take(): void {
    this.#taken += 1
  }

  hold(slot: HeldSlot): void {
    this.#held.add(slot)
  }

  /** Nothing was begun after all. */
  untake(): void {
    this.#taken -= 1
  }

  release(slot: HeldSlot, spent: number): void {
    this.#held.delete(slot)
    this.#taken -= 1
    this.#typical += (spent - this.#typical) * (this.#typical === 0 ? 1 : newest)
  }

  /** Milliseconds until a slot is expected to be free. */
  firstFree(now: number): number {
    if (this.free > 0) return 0
    let soonest = Infinity
    // of those who may end at any moment the first ends the sooner the more they are: as rates, their ends add up
    let endsPerMillisecond = 0
    for (const slot of this.#held) {
      const expectation = this.#expectationOf(slot, now)
      const left = Math.min(expectation.residual(now - slot.since), slot.deadline.remaining())
      if (expectation.exact) soonest = Math.min(soonest, left)
      else endsPerMillisecond += 1 / Math.max(left, 1)
    }
    return Math.min(soonest, endsPerMillisecond > 0 ? 1 / endsPerMillisecond : Infinity)
  }

  #expectationOf(slot: HeldSlot, now: number): Expectation {
    return this.#estimates.of(slot.for.request, now) ?? givenExpectation(this.#typical)
  }
}
