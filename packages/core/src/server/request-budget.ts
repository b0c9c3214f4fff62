import type { EventEmitter } from 'node:events'
import type { DeadlineWatcher } from '../deadline-watcher.ts'
import { runWithDeadline } from '../current.ts'
import { Deadline, internals } from '../deadline.ts'
import { isLearned, parseFloor, teachFloor } from '../duration.ts'
import type { ErrorDetails, TimeBudgetError } from '../errors.ts'
import { requestFinished, type RequestFinished, requestStarted, workLate } from '../events.ts'
import { budgetTooSmall } from '../reasons.ts'
import { formatServerTiming } from '../server-timing.ts'
import type { Arrival, ArrivalOptions } from './arrival.ts'
import { warnOfIgnored, warnOfLonger } from './ignored-options.ts'
import { keepContext, lacksContext } from './keep-context.ts'
import type { Shutdown, Stoppable } from './shutdown.ts'

/** Whose budget it is. */
export interface BudgetOwner extends DeadlineWatcher, Stoppable {}

/** What a budget is made of. */
export interface BudgetParts {
  readonly entry: Deadline
  /** Absent if the request around it has been read, and is told of, already. */
  readonly arrival: Pick<Arrival, 'source' | 'clamped'> | undefined
  /** The framework's or Node's request, for events. */
  readonly request: object
  readonly options: ArrivalOptions<never>
}

/** A request's deadline, what routes have made of it, and the events that tell of its beginning and its end. */
export class RequestBudget {
  readonly #owner: BudgetOwner
  /** The deadline it arrived with. */
  readonly entry: Deadline
  readonly #arrival: BudgetParts['arrival']
  readonly #request: object
  readonly #options: BudgetParts['options']
  #tightened: Deadline[] | undefined
  #shutdowns: Shutdown[] | undefined
  #isLateNoted = false

  constructor(owner: BudgetOwner, { entry, arrival, request, options }: BudgetParts) {
    this.#owner = owner
    this.entry = entry
    this.#arrival = arrival
    this.#request = request
    this.#options = options
    if (!options.ambient) internals.spareContext(entry)
  }

  /** The deadline that rules now: the request's, or a route's tighter one. */
  get deadline(): Deadline {
    return this.#tightened?.at(-1) ?? this.entry
  }

  /** What an error about it tells of this moment. */
  get details(): ErrorDetails {
    const { deadline } = this
    return { budget: deadline.budget, elapsed: deadline.elapsed(), remaining: deadline.remaining() }
  }

  /**
   * Whether a client that leaves now does what the deadline is about to do. A caller that keeps the same deadline gives up
   * a moment before us; the deadline is waited for then, so that every hop of a chain ends alike.
   */
  get isAtTheEdge(): boolean {
    const arrival = this.#arrival
    const { skewTolerance, reserve } = this.#options
    if (this.deadline.expired) return false
    // the request around it hears of its client as well, and knows
    if (arrival === undefined) return this.entry.remaining() <= skewTolerance
    if (arrival.source !== 'header' || arrival.clamped) return false
    return this.entry.remaining() + reserve <= skewTolerance
  }

  announce(): void {
    if (this.#arrival !== undefined && requestStarted.observed) this.#tellStarted(this.#arrival)
  }

  #tellStarted({ source, clamped }: Pick<Arrival, 'source' | 'clamped'>): void {
    requestStarted.publish(() => ({ deadline: this.entry, source, clamped, request: this.#request }))
  }

  /** Goes down with the process. */
  join(shutdown: Shutdown | undefined): void {
    if (shutdown === undefined) return
    shutdown.enter(this.#owner)
    this.#shutdowns ??= []
    this.#shutdowns.push(shutdown)
  }

  /** Whether the process is about to end. */
  get isStopping(): boolean {
    return this.#shutdowns?.some(({ hasBegun }) => hasBegun) === true
  }

  /** From now on the owner hears of the end; returns the reason if it has come already: nobody else will tell. */
  watch(): TimeBudgetError | undefined {
    return internals.watch(this.deadline, this.#owner, { hold: false, isJustMade: true })
  }

  /** Gives what follows that budget, or what is left if it is less; returns the reason if there is too little. */
  tighten(options: ArrivalOptions<never>, budget: number): TimeBudgetError | undefined {
    warnOfIgnored(options, this.#options)
    if (this.#arrival?.source === 'default') warnOfLonger(options, this.entry.budget)
    const { floor, reserve } = options
    const outer = this.deadline
    const remaining = outer.remaining()
    const needed = parseFloor(floor, 'floor', remaining - reserve) + reserve
    if (remaining < needed) return budgetTooSmall({ operation: undefined, needed, remaining, of: outer })
    this.#tightened ??= []
    this.#tightened.push(Deadline.after(Math.min(budget, remaining - reserve), { parent: outer }))
    return this.watch()
  }

  /** Runs what handles the request, under its deadline. */
  run<T>(work: () => T): T {
    return this.#options.ambient ? runWithDeadline(this.deadline, work) : work()
  }

  /** Lets what listens to an object of the request's run under its deadline too. */
  keepContext(emitter: EventEmitter): void {
    if (this.#options.ambient) keepContext(emitter, () => this.deadline)
  }

  /** The deadline to call an event's listeners under, unless nobody listens or they are called under it anyway. */
  contextFor(emitter: EventEmitter, event: string | symbol): Deadline | undefined {
    if (!this.#options.ambient) return undefined
    const { deadline } = this
    return lacksContext(emitter, event, deadline) ? deadline : undefined
  }

  /** The ledger as Server-Timing, if this caller gets it. */
  get serverTiming(): string | undefined {
    const { serverTiming } = this.#options
    const isWanted = serverTiming === 'peers' ? this.#arrival?.source === 'header' : serverTiming
    return isWanted ? formatServerTiming(this.entry.ledger.entries) : undefined
  }

  /** Counts an answer that came after the end; the first one, or none once `excuseLate` was called. */
  noteLate(): void {
    if (this.#isLateNoted) return
    this.#isLateNoted = true
    const { deadline } = this
    const lateBy = Math.max(0, deadline.elapsed() - deadline.budget)
    workLate.publish(() => ({ kind: 'answer', operation: undefined, deadline, lateBy }))
  }

  excuseLate(): void {
    this.#isLateNoted = true
  }

  /** It is over: nothing is held any more, and whoever listens is told. */
  settle(end: Pick<RequestFinished, 'outcome' | 'status' | 'goneBy'>): void {
    this.#tightened?.toReversed().forEach((tightened) => tightened.settle())
    this.entry.settle()
    if (this.#shutdowns !== undefined) this.#leave(this.#shutdowns)
    if (this.#arrival === undefined) return
    const { floor } = this.#options
    if (isLearned(floor)) teachFloor(floor, { spent: this.entry.elapsed(), outcome: end.outcome })
    if (requestFinished.observed) this.#tellFinished(this.#arrival, end)
  }

  #leave(shutdowns: readonly Shutdown[]): void {
    for (const shutdown of shutdowns) shutdown.leave(this.#owner)
  }

  #tellFinished(
    { source, clamped }: Pick<Arrival, 'source' | 'clamped'>,
    end: Pick<RequestFinished, 'outcome' | 'status' | 'goneBy'>,
  ): void {
    requestFinished.publish(() => {
      const { deadline } = this
      const elapsed = this.entry.elapsed()
      const isTightened = deadline !== this.entry
      // a route's deadline began later than the request, and ends that much later on its scale
      const budget = isTightened ? elapsed - deadline.elapsed() + deadline.budget : this.entry.budget
      return {
        ...end,
        deadline,
        source: isTightened ? 'route' : source,
        clamped,
        request: this.#request,
        elapsed,
        budget,
        overrun: Math.max(0, elapsed - budget),
      }
    })
  }
}
