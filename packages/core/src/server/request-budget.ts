import type { EventEmitter } from 'node:events'
import type { DeadlineWatcher } from '../armed.ts'
import { runWithDeadline } from '../current.ts'
import { Deadline, internals } from '../deadline.ts'
import { isLearned, parseFloor, teachFloor } from '../duration.ts'
import type { ErrorDetails, TimeBudgetError } from '../errors.ts'
import { requestFinished, type RequestFinished, requestStarted, workLate } from '../events.ts'
import { budgetTooSmall } from '../reasons.ts'
import { formatServerTiming } from '../server-timing.ts'
import type { Arrival, ArrivalOptions } from './arrival.ts'
import { warnOfIgnored, warnOfLonger } from './ignored-options.ts'
import { emitUnder, keepContext } from './keep-context.ts'
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
  readonly #parts: BudgetParts
  #tightened: Deadline[] | undefined
  #shutdowns: Shutdown[] | undefined
  #isLateNoted = false

  constructor(owner: BudgetOwner, parts: BudgetParts) {
    this.#owner = owner
    this.#parts = parts
    if (!parts.options.ambient) internals.spareContext(parts.entry)
  }

  /** The deadline that rules now: the request's, or a route's tighter one. */
  get deadline(): Deadline {
    return this.#tightened?.at(-1) ?? this.#parts.entry
  }

  /** The deadline it arrived with. */
  get entry(): Deadline {
    return this.#parts.entry
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
    const { entry, arrival, options } = this.#parts
    if (this.deadline.expired) return false
    // the request around it hears of its client as well, and knows
    if (arrival === undefined) return entry.remaining() <= options.skewTolerance
    if (arrival.source !== 'header' || arrival.clamped) return false
    return entry.remaining() + options.reserve <= options.skewTolerance
  }

  announce(): void {
    const { entry: deadline, arrival, request } = this.#parts
    if (arrival === undefined || !requestStarted.observed) return
    const { source, clamped } = arrival
    requestStarted.publish(() => ({ deadline, source, clamped, request }))
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
    const { arrival, entry, options: first } = this.#parts
    warnOfIgnored(options, first)
    if (arrival?.source === 'default') warnOfLonger(options, entry.budget)
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
    return this.#parts.options.ambient ? runWithDeadline(this.deadline, work) : work()
  }

  /** Lets what listens to an object of the request's run under its deadline too. */
  keepContext(emitter: EventEmitter): void {
    if (this.#parts.options.ambient) keepContext(emitter, () => this.deadline)
  }

  /** Emits an event of an object of the request's, its listeners under the deadline. */
  emit(
    emitter: EventEmitter,
    original: EventEmitter['emit'],
    args: Parameters<EventEmitter['emit']>,
  ): boolean {
    return this.#parts.options.ambient
      ? emitUnder(this.deadline, original, emitter, args)
      : Reflect.apply(original, emitter, args)
  }

  /** The ledger as Server-Timing, if this caller gets it. */
  get serverTiming(): string | undefined {
    const { entry, arrival, options } = this.#parts
    const isWanted = options.serverTiming === 'peers' ? arrival?.source === 'header' : options.serverTiming
    return isWanted ? formatServerTiming(entry.ledger.entries) : undefined
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
    const { entry, arrival, request, options } = this.#parts
    const { deadline } = this
    this.#tightened?.toReversed().forEach((tightened) => tightened.settle())
    entry.settle()
    this.#shutdowns?.forEach((shutdown) => shutdown.leave(this.#owner))
    if (arrival === undefined) return
    if (isLearned(options.floor)) teachFloor(options.floor, { spent: entry.elapsed(), outcome: end.outcome })
    if (!requestFinished.observed) return
    requestFinished.publish(() => {
      const elapsed = entry.elapsed()
      const isTightened = deadline !== entry
      // a route's deadline began later than the request, and ends that much later on its scale
      const budget = isTightened ? elapsed - deadline.elapsed() + deadline.budget : entry.budget
      const source = isTightened ? 'route' : arrival.source
      const overrun = Math.max(0, elapsed - budget)
      return { ...end, deadline, source, clamped: arrival.clamped, request, elapsed, budget, overrun }
    })
  }
}
