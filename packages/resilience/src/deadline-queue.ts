import { type OperationScope, type QueueJudged, queueJudged, startOperation } from '@timebudget/core'
import { Estimates } from './queue-estimates.ts'
import { type Prospect, worthStarting } from './queue-judge.ts'
import { Lanes } from './queue-lanes.ts'
import { Occupancy } from './queue-occupancy.ts'
import {
  type DeadlineQueueOptions,
  type QueueRequest,
  type ResolvedQueueOptions,
  type ResolvedRequest,
  resolveQueueOptions,
  resolveRequest,
} from './queue-options.ts'
import { overloaded } from './queue-refusal.ts'
import { HeldSlot, type Slot } from './queue-slot.ts'
import { type Arrival, type Grant, Waiter } from './queue-waiter.ts'

/** The class of work of which nobody knows how long it takes. */
const unknownLength = Symbol('unknown length')

// Sums of work must stay numbers, whatever is said of its length: eleven days.
const longestWork = 1e9

/**
 * Slots in front of something scarce. While one is free, work begins at once. While all are taken, who must finish first
 * goes first, and who can no longer finish in time is refused, on arrival or when it is its turn.
 *
 *     const gpu = new DeadlineQueue({ name: 'gpu', slots: 4, estimate: '6s' })
 *     const text = await gpu.run(({ signal }) => generate(prompt, { signal }))
 */
export class DeadlineQueue {
  readonly #options: ResolvedQueueOptions
  readonly #estimates: Estimates
  readonly #lanes = new Lanes<Waiter>()
  readonly #slots: Occupancy
  #arrivals = 0
  #filling = false

  /** @throws TypeError that names an option which is unknown or cannot be read. */
  constructor(options: DeadlineQueueOptions) {
    this.#options = resolveQueueOptions(options)
    this.#estimates = new Estimates(this.#options.estimate, this.#options.clock)
    this.#slots = new Occupancy(this.#options.slots, this.#estimates)
  }

  get name(): string {
    return this.#options.name
  }

  /** How many wait for a slot. */
  get waiting(): number {
    return this.#lanes.size
  }

  /** How many hold a slot. */
  get running(): number {
    return this.#slots.taken
  }

  /** Whether all slots are taken: under this pressure a learned floor may refuse. */
  get busy(): boolean {
    return this.#slots.free === 0
  }

  /** Milliseconds that such a request would wait if it came now. */
  predictedWait(request: QueueRequest = {}): number {
    const resolved = resolveRequest(request, this.#options)
    if (this.#startsAtOnce()) return 0
    const left = Math.min(resolved.timeout, Math.max(0, resolved.deadline.remaining() - resolved.reserve))
    return this.#predict(this.#describe(resolved, left))
  }

  /**
   * Runs the work in a slot, as an operation. Waits for one if need be, no longer than the deadline.
   * @throws OverloadedError if it could not finish in time; what `operation()` throws.
   */
  async run<T>(work: (scope: OperationScope) => Promise<T> | T, request: QueueRequest = {}): Promise<T> {
    const slot = await this.#enter(request)
    try {
      return await slot.operation.run(work)
    } finally {
      slot.giveBack()
    }
  }

  /**
   * A slot for work that ends elsewhere, such as a stream's. Give it back by `release()` or `using`; its deadline does if
   * nobody else does.
   * @throws OverloadedError if it could not finish in time; what `operation()` throws before it begins.
   */
  async acquire(request: QueueRequest = {}): Promise<Slot> {
    const slot = await this.#enter(request)
    slot.giveBackWhenCutOff()
    const reason = slot.deadline.reason
    if (reason === undefined) return slot
    slot.release()
    throw reason
  }

  async #enter(request: QueueRequest): Promise<HeldSlot<Grant>> {
    const resolved = resolveRequest(request, this.#options)
    if (!this.#startsAtOnce()) return this.#line(resolved)
    const slot = this.#begin({ request: resolved, waited: 0, booked: undefined })
    this.#publish('admitted', { request: resolved, waited: 0, predicted: 0 })
    return slot
  }

  /** No test of anything: without pressure the queue must cost nothing. */
  #startsAtOnce(): boolean {
    return this.#slots.free > 0 && this.#lanes.size === 0
  }

  #line(request: ResolvedRequest): Promise<HeldSlot<Grant>> {
    const { deadline, timeout, reserve, asked } = request
    const operation = startOperation(`${this.name}-wait`, {
      deadline,
      timeout,
      reserve,
      signal: asked.signal,
    })
    const arrival = this.#describe(request, operation.deadline.remaining())
    const predicted = this.#predict(arrival)
    const waiter = new Waiter(arrival, { operation, predicted })
    if (this.#refuses(waiter)) this.#shed(waiter)
    else {
      this.#lanes.join(waiter)
      operation.onCutOff((reason) => {
        this.#lanes.leave(waiter)
        this.#dismiss(waiter, reason)
      })
    }
    return waiter.slot
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
      rank: this.#estimates.any ? now + left : -this.#arrivals,
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

  /** Judges an arrival. What it asks for counts as demand of its class, whatever the verdict, if time would have been enough. */
  #refuses(waiter: Waiter): boolean {
    const { expectation, budget, predicted, lane } = waiter
    const full = this.#lanes.size >= this.#options.maxWaiting
    if (expectation === undefined) {
      lane.level.noteDemand(lane, waiter.work)
      return full && !this.#makesRoom(lane)
    }
    const prospect: Prospect = { expectation, budget, left: budget, contested: this.#lanes.size > 0 }
    if (!worthStarting(prospect)) return true
    lane.level.noteDemand(lane, waiter.work)
    if (!full && worthStarting({ ...prospect, left: budget - predicted })) return false
    lane.wantedUntil = Math.max(lane.wantedUntil, waiter.since + budget)
    return true
  }

  /** Where the newest goes first, it takes the place of whoever has waited longest. */
  #makesRoom(lane: Waiter['lane']): boolean {
    const oldest = this.#estimates.any ? undefined : lane.line.last
    if (oldest === undefined) return false
    this.#lanes.leave(oldest)
    this.#shed(oldest)
    return true
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
    const { expectation, budget, left, request, lane, work } = waiter
    const prospect = expectation && { expectation, budget, left, contested: this.#lanes.size > 0 }
    const reason = waiter.operation.deadline.reason
    if (reason === undefined && prospect !== undefined && !worthStarting(prospect)) {
      this.#shed(waiter)
      return
    }
    const ended = waiter.operation.end()
    if (ended !== undefined) {
      this.#dismiss(waiter, ended)
      return
    }
    const waited = this.#waited(waiter)
    try {
      const slot = this.#begin({ request, waited, booked: { lane, slotTime: work } })
      this.#lanes.book(lane, work, this.#options.clock.now())
      waiter.grant(slot)
      this.#publish('admitted', { request, waited, predicted: waiter.predicted })
    } catch (error) {
      this.#dismiss(waiter, error)
    }
  }

  #begin(grant: Grant & { readonly waited: number }): HeldSlot<Grant> {
    const { request, waited } = grant
    const { deadline, reserve, timeout, asked } = request
    const { floor, signal, attempt } = asked
    this.#slots.take()
    try {
      const operation = startOperation(request.operation, {
        deadline,
        floor,
        reserve,
        signal,
        attempt,
        timeout: Math.max(0, timeout - waited),
      })
      const slot = new HeldSlot<Grant>((held) => this.#takeBack(held), {
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

  #takeBack(slot: HeldSlot<Grant>): void {
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
    const { slots, clock } = this.#options
    const now = clock.now()
    const drained = this.#slots.firstFree(now) + (this.#lanes.work + this.#slots.typical) / slots
    const waited = this.#waited(waiter)
    const wait = Math.max(waited, waiter.predicted)
    waiter.refuse(waiter.operation.fail(overloaded(waiter, { queue: this, slots, wait, drained })))
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
      queue: this.name,
      deadline: request.deadline,
      decision,
      waited,
      predicted,
      waiting: this.waiting,
      running: this.running,
    }))
  }
}
