import { type QueueJudged, queueJudged, startOperation } from '@timebudget/core'
import { Estimates } from './queue-estimates.ts'
import { leastWorth } from './queue-judge.ts'
import { Lanes } from './queue-lanes.ts'
import { Occupancy } from './queue-occupancy.ts'
import type { ResolvedQueueOptions, ResolvedRequest } from './queue-options.ts'
import { overloaded } from './queue-refusal.ts'
import { type Grant, HeldSlot } from './queue-slot.ts'
import { type Arrival, Waiter } from './queue-waiter.ts'

/** The class of work of which nobody knows how long it takes. */
const unknownLength = Symbol('unknown length')

// Sums of work must stay numbers, whatever is said of its length: eleven days.
const longestWork = 1e9

// Whoever has more time, or no deadline at all, stands as if it were so far away: the most that a server grants a request
// by default. Else it would never be its turn.
const farthest = 5 * 60_000

/** Decides who gets a slot, and when. */
export class Admission {
  readonly #options: ResolvedQueueOptions
  readonly #estimates: Estimates
  readonly #lanes = new Lanes<Waiter>()
  readonly #slots: Occupancy
  readonly #waitName: string
  #arrivals = 0
  #filling = false

  constructor(options: ResolvedQueueOptions) {
    this.#options = options
    this.#waitName = `${options.name}-wait`
    this.#estimates = new Estimates(options.estimate, options.clock)
    this.#slots = new Occupancy(options.slots, this.#estimates)
  }

  get waiting(): number {
    return this.#lanes.size
  }

  get running(): number {
    return this.#slots.taken
  }

  /** Milliseconds. */
  predictedWait(request: ResolvedRequest): number {
    if (this.#startsAtOnce()) return 0
    const { deadline, timeout, reserve } = request
    const left = Math.min(timeout, Math.max(0, deadline.remaining() - reserve))
    return this.#predict(this.#describe(request, left))
  }

  /**
   * A slot, or the promise of one when it is its turn, which rejects with why there is none.
   * @throws why work that could begin at once does not, and why it could not even stand in line.
   */
  enter(request: ResolvedRequest): HeldSlot | Promise<HeldSlot> {
    if (!this.#startsAtOnce()) return this.#line(request)
    this.#slots.take()
    const slot = this.#begin({ request, booked: undefined }, 0)
    this.#publish('admitted', { request, waited: 0, predicted: 0 })
    return slot
  }

  /** No test of anything: without pressure the queue must cost nothing. */
  #startsAtOnce(): boolean {
    return this.#slots.free > 0 && this.#lanes.size === 0
  }

  #line(request: ResolvedRequest): Promise<HeldSlot> {
    const { deadline, timeout, reserve, asked } = request
    const operation = startOperation(this.#waitName, {
      deadline,
      timeout,
      reserve,
      signal: asked.signal,
    })
    const arrival = this.#describe(request, operation.deadline.remaining())
    const predicted = this.#predict(arrival)
    const waiter = new Waiter(arrival, { operation, predicted })
    if (this.#refuses(waiter)) this.#shed(waiter)
    else this.#join(waiter)
    return waiter.slot
  }

  #join(waiter: Waiter): void {
    const oldest = this.#isFull ? waiter.lane.line.last : undefined
    if (oldest !== undefined) this.#lanes.leave(oldest)
    this.#lanes.join(waiter)
    waiter.operation.onCutOff((reason) => {
      this.#lanes.leave(waiter)
      this.#dismiss(waiter, reason)
    })
    // not before its successor stands in line: whoever hears of it may ask for a slot too
    if (oldest !== undefined) this.#shed(oldest)
  }

  get #isFull(): boolean {
    return this.#lanes.size >= this.#options.maxWaiting
  }

  #describe(request: ResolvedRequest, left: number): Arrival {
    const now = this.#options.clock.now()
    const expectation = this.#estimates.of(request, now)
    const length = expectation?.mean ?? this.#slots.typical
    const name =
      request.class ??
      (expectation === undefined ? unknownLength : Math.round(Math.log2(expectation.mean + 1)))
    this.#arrivals += 1
    return {
      request,
      expectation,
      lane: this.#lanes.laneOf({ priority: request.priority, name, now }),
      // with nothing known the newest first: it has the most time left
      rank: this.#estimates.any ? now + Math.min(left, farthest) : -this.#arrivals,
      arrival: this.#arrivals,
      work: Math.min(length, left, longestWork),
      since: now,
      budget: left,
    }
  }

  #predict(arrival: Arrival): number {
    const now = this.#options.clock.now()
    return (
      this.#slots.firstFree(now) + this.#lanes.workAhead(arrival, arrival.lane, now) / this.#options.slots
    )
  }

  /** Judges an arrival. If it could finish when begun at once, it counts as demand of its class, whatever the verdict. */
  #refuses(waiter: Waiter): boolean {
    const { expectation, budget, predicted, lane } = waiter
    let tooLate = false
    if (expectation !== undefined) {
      const least = leastWorth(expectation, budget, { contested: this.#lanes.size > 0 })
      if (expectation.chance(budget) < least) return true
      tooLate = expectation.chance(budget - predicted) < least
    }
    lane.level.noteDemand(lane, waiter.work)
    // where the newest goes first, it takes the place of whoever has waited longest
    const isRoom = !this.#isFull || (!this.#estimates.any && lane.line.size > 0)
    if (!tooLate && isRoom) return false
    this.#noteWanted(waiter)
    return true
  }

  /** Who was refused counts as wanting a slot for as long as it would have waited, but not for ever. */
  #noteWanted({ lane, since, budget }: Waiter): void {
    lane.wantedUntil = Math.max(lane.wantedUntil, since + Math.min(budget, farthest))
  }

  /** Gives free slots to those who wait, until there is none of the one or of the other. */
  #fill(): void {
    if (this.#filling) return
    this.#filling = true
    try {
      while (this.#slots.free > 0) {
        const waiter = this.#lanes.next()
        if (waiter === undefined) return
        this.#lanes.leave(waiter)
        this.#serve(waiter)
      }
    } finally {
      this.#filling = false
    }
  }

  #serve(waiter: Waiter): void {
    const { request, lane, work } = waiter
    if (this.#comesTooLate(waiter)) {
      this.#noteWanted(waiter)
      this.#shed(waiter)
      return
    }
    // before anybody is told of anything: whoever listens may ask for a slot too
    this.#slots.take()
    const ended = waiter.operation.end()
    if (ended !== undefined) {
      this.#slots.untake()
      this.#dismiss(waiter, ended)
      return
    }
    const waited = this.#waited(waiter)
    let slot: HeldSlot
    try {
      slot = this.#begin({ request, booked: { lane, slotTime: work } }, waited)
    } catch (error) {
      this.#dismiss(waiter, error)
      return
    }
    this.#lanes.book(lane, work, this.#options.clock.now())
    waiter.grant(slot)
    this.#publish('admitted', { request, waited, predicted: waiter.predicted })
  }

  #comesTooLate({ expectation, budget, operation }: Waiter): boolean {
    if (expectation === undefined || operation.deadline.expired) return false
    const least = leastWorth(expectation, budget, { contested: this.#lanes.size > 0 })
    return expectation.chance(operation.deadline.remaining()) < least
  }

  /** Begins work in a slot that is taken; without it the slot is free again. */
  #begin(grant: Grant, waited: number): HeldSlot {
    const { deadline, reserve, timeout, asked } = grant.request
    const { floor, signal, attempt } = asked
    try {
      const operation = startOperation(grant.request.operation, {
        deadline,
        floor,
        reserve,
        signal,
        attempt,
        timeout: Math.max(0, timeout - waited),
      })
      const slot = new HeldSlot((held) => this.#takeBack(held), {
        for: grant,
        operation,
        since: this.#options.clock.now(),
        waited,
      })
      this.#slots.hold(slot)
      return slot
    } catch (error) {
      this.#slots.untake()
      this.#fill()
      throw error
    }
  }

  #takeBack(slot: HeldSlot): void {
    const now = this.#options.clock.now()
    const { request, booked } = slot.for
    const spent = now - slot.since
    this.#slots.release(slot, spent)
    this.#estimates.learn(request, { spent, outcome: slot.outcome })
    if (booked !== undefined) this.#lanes.book(booked.lane, spent - booked.slotTime, now)
    this.#fill()
  }

  /** It could not finish in time. */
  #shed(waiter: Waiter): void {
    const { name, slots, clock } = this.#options
    const now = clock.now()
    const drained = this.#slots.firstFree(now) + (this.#lanes.work + this.#slots.typical) / slots
    const waited = this.#waited(waiter)
    const wait = Math.max(waited, waiter.predicted)
    const refusal = overloaded(waiter, { queue: name, slots, waiting: this.waiting, wait, drained })
    waiter.refuse(waiter.operation.fail(refusal))
    this.#publish('shed', { request: waiter.request, predicted: waiter.predicted, waited })
  }

  /** Its deadline has come, or whoever asked has left. */
  #dismiss(waiter: Waiter, reason: unknown): void {
    waiter.refuse(reason)
    this.#publish('left', {
      request: waiter.request,
      predicted: waiter.predicted,
      waited: this.#waited(waiter),
    })
  }

  #waited(waiter: Waiter): number {
    return this.#options.clock.now() - waiter.since
  }

  #publish(
    decision: QueueJudged['decision'],
    { request, waited, predicted }: { request: ResolvedRequest; waited: number; predicted: number },
  ): void {
    queueJudged.publish(() => ({
      queue: this.#options.name,
      deadline: request.deadline,
      decision,
      waited,
      predicted,
      waiting: this.waiting,
      running: this.running,
    }))
  }
}
