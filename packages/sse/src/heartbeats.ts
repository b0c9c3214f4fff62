import { type Clock, type ClockTimer, systemClock } from '@timebudget/core'

/** Who is to show now and then that it is alive. */
export interface Beating {
  /** Called once it has been quiet for its interval. */
  beat(): void
}

/** Those with the same interval, the longest quiet first, each with the moment it falls due. */
type Ring = Map<Beating, number>

/**
 * The heartbeats of all streams of a process, on one timer. Streams of one interval stand in the order in which they
 * last wrote, so that neither a write nor a beat looks at the others.
 */
export class Heartbeats {
  readonly #clock: Clock
  readonly #rings = new Map<number, Ring>()
  #timer: ClockTimer | undefined
  #wakesAt = Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Starts the interval anew, in milliseconds: something has just been written. */
  restart(stream: Beating, interval: number): void {
    if (interval === Infinity) return
    let ring = this.#rings.get(interval)
    if (ring === undefined) {
      ring = new Map()
      this.#rings.set(interval, ring)
    }
    const due = this.#clock.now() + interval
    ring.delete(stream)
    ring.set(stream, due)
    if (due < this.#wakesAt) this.#wakeAt(due)
  }

  stop(stream: Beating, interval: number): void {
    const ring = this.#rings.get(interval)
    if (ring?.delete(stream) === true && ring.size === 0) this.#rings.delete(interval)
    if (this.#rings.size > 0) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#wakesAt = Infinity
  }

  readonly #wake = (): void => {
    this.#timer = undefined
    this.#wakesAt = Infinity
    const now = this.#clock.now()
    for (const [interval, ring] of [...this.#rings]) beatDue(ring, { interval, now })
    const next = Math.min(...[...this.#rings.values()].map(firstDue))
    if (next !== Infinity) this.#wakeAt(next)
  }

  #wakeAt(due: number): void {
    this.#timer?.cancel()
    this.#wakesAt = due
    // rounded up: a timer that fires early would find nothing due
    this.#timer = this.#clock.wakeAfter(Math.max(1, Math.ceil(due - this.#clock.now())), this.#wake)
  }
}

function beatDue(ring: Ring, { interval, now }: { readonly interval: number; readonly now: number }): void {
  for (const [stream, due] of [...untilLater(ring, now)]) {
    // one that was stopped, or wrote, on account of another's beat has none to give
    if (ring.get(stream) !== due) continue
    ring.delete(stream)
    ring.set(stream, now + interval)
    stream.beat()
  }
}

function* untilLater(ring: Ring, now: number): Generator<[Beating, number]> {
  for (const entry of ring) {
    if (entry[1] > now) return
    yield entry
  }
}

function firstDue(ring: Ring): number {
  for (const due of ring.values()) return due
  return Infinity
}

const shared = new WeakMap<Clock, Heartbeats>()

/** The one timer for all streams that go by this clock. */
export function heartbeatsOf(clock: Clock = systemClock): Heartbeats {
  let heartbeats = shared.get(clock)
  if (heartbeats === undefined) {
    heartbeats = new Heartbeats(clock)
    shared.set(clock, heartbeats)
  }
  return heartbeats
}
