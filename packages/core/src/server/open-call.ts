import type { EventEmitter } from 'node:events'
import type { DeadlineWatcher } from '../deadline-watcher.ts'
import { currentDeadline } from '../current.ts'
import { adopt, Deadline } from '../deadline.ts'
import type { Duration } from '../duration.ts'
import { ClientClosedError, findTimeBudgetError, type TimeBudgetError } from '../errors.ts'
import type { Outcome } from '../outcome.ts'
import { type Arrival, type ArrivalOptions, type Arriving, readArrival } from './arrival.ts'
import { budgetFor, optionsFor } from './chosen-budget.ts'
import { resolveServerOptions, type ServerOptions, type Trust, trustAs } from './options.ts'
import { RequestBudget } from './request-budget.ts'
import type { Stoppable } from './shutdown.ts'

/** A call of a protocol on top of HTTP, such as gRPC, as it arrives. */
export interface ArrivingCall extends Arriving {
  /** `/package.Service/Method` */
  readonly path: string
}

/** `ServerOptions`, as far as they concern calls whose answers are no HTTP answers. */
export interface CallServerOptions extends Omit<ServerOptions, 'default' | 'onExceeded' | 'trust'> {
  /** Budget of a call that carries no usable deadline, at most `max`, or a function of the call that gives it; `'5s'`. */
  readonly default?: Duration | ((call: ArrivingCall) => Duration | undefined) | undefined
  /** `'clamp'`, `'ignore'`, or a function of the call that says which; `'clamp'`. */
  readonly trust?: Trust | ((call: ArrivingCall) => Trust) | undefined
}

/** `CallServerOptions` with every default filled in, durations in milliseconds. */
export type ResolvedCallOptions = ArrivalOptions<ArrivingCall>

/**
 * Fills in the defaults and reads the durations.
 * @throws TypeError that names the option which is unknown or cannot be read.
 */
export function resolveCallOptions(options: CallServerOptions = {}): ResolvedCallOptions {
  if ('onExceeded' in options) throw new TypeError('onExceeded: calls are answered with a status')
  const { trust = 'clamp', default: budget, ...others } = options
  const resolved = resolveServerOptions({
    ...others,
    default: typeof budget === 'function' ? undefined : budget,
    trust: typeof trust === 'function' ? undefined : trust,
  })
  return Object.freeze({
    ...resolved,
    chooseBudget: typeof budget === 'function' ? budget : undefined,
    isBudgetGiven: budget !== undefined,
    trust: typeof trust === 'function' ? trust : trustAs(trust),
  })
}

/**
 * A call under its deadline, for protocols that answer in their own way: whoever ends it first, its answer, the client or
 * the clock, ends it alone. Within a request that stands under a deadline already, it stands under that.
 */
export class OpenCall implements DeadlineWatcher, Stoppable {
  readonly #call: ArrivingCall
  readonly #options: ResolvedCallOptions
  /** Absent if the request around it has been read already. */
  readonly #arrival: Arrival | undefined
  readonly #budget: RequestBudget
  #tellEnded: ((reason: TimeBudgetError) => void) | undefined
  #reason: TimeBudgetError | undefined
  #leftAtTheEdge = false
  #isOver = false

  constructor(call: ArrivingCall, given: ResolvedCallOptions) {
    const options = optionsFor(call, given)
    const around = currentDeadline()
    const outer = around === undefined ? undefined : adopt(around)
    this.#call = call
    this.#options = options
    const read = outer === undefined ? readArrival(call, options) : undefined
    this.#arrival = read?.arrival
    this.#budget = new RequestBudget(this, {
      entry: read?.deadline ?? outer?.child({}) ?? Deadline.after(options.budget),
      arrival: this.#arrival,
      request: call,
      options,
    })
  }

  /** The deadline that rules now: the call's, or a handler's tighter one. */
  get deadline(): Deadline {
    return this.#budget.deadline
  }

  /** Why it ended, if otherwise than by its handler's answer. */
  get reason(): TimeBudgetError | undefined {
    return this.#reason
  }

  /** Whether it has ended: no handler is to be entered, and nothing sent. */
  isOver(): boolean {
    return this.#isOver
  }

  /** The header that could not be read, where that is to be answered with an error of the protocol. */
  get malformedHeader(): string | undefined {
    return this.#arrival?.malformedHeader
  }

  /** The ledger as Server-Timing, if this caller gets it. */
  get serverTiming(): string | undefined {
    return this.#budget.serverTiming
  }

  /** Begins; `onEnded` is called once if it ends otherwise than by `finish`, before the signal aborts: to answer the client. */
  begin(onEnded: (reason: TimeBudgetError) => void): void {
    this.#tellEnded = onEnded
    this.#budget.announce()
    this.#budget.join(this.#options.shutdown)
    this.#endBy(this.#arrival?.refusal ?? this.#budget.watch())
  }

  /** Gives what follows less time; never more. */
  tighten(options: ResolvedCallOptions): void {
    if (!this.#isOver) this.#endBy(this.#budget.tighten(options, budgetFor(this.#call, options)))
  }

  /** Runs what handles the call, under its deadline. */
  run<T>(work: () => T): T {
    return this.#budget.run(work)
  }

  /** Lets what listens to an object of the call's, such as a stream of messages, run under its deadline too. */
  keepContext(emitter: EventEmitter): void {
    this.#budget.keepContext(emitter)
  }

  /**
   * Ends it if its time is up although no timer has run yet, as after a blocked event loop; returns whether it has ended.
   * To be asked before anything is sent.
   */
  endIfLate(): boolean {
    if (!this.#isOver && this.#options.late === 'replace') this.#endBy(this.deadline.reason)
    if (this.#isOver) this.#noteLate()
    return this.#isOver
  }

  /** The handler's answer is about to be sent and ends the call; `false` if something else has, and nothing may be sent. */
  finish(outcome: Outcome): boolean {
    if (this.endIfLate()) return false
    this.#close(this.#leftAtTheEdge ? 'deadline_exceeded' : outcome)
    return true
  }

  /** Answers an error of ours that a handler let through; `false` if the error is none of ours. */
  fail(error: unknown): boolean {
    const ours = findTimeBudgetError(error)
    if (ours === undefined) return false
    // what else the handler sends now is its way of failing
    if (!this.#isOver) this.#budget.excuseLate()
    this.#endBy(ours)
    return true
  }

  /** Ends the call for that reason, unless it is over. */
  stop(reason: TimeBudgetError): void {
    this.#endBy(reason)
  }

  deadlineEnded(reason: TimeBudgetError): void {
    this.#endBy(reason)
  }

  /** The client left; `how` is `h2_rst_8` and the like. */
  clientGone(how: string): void {
    if (this.#budget.isAtTheEdge) {
      this.#leftAtTheEdge = true
      return
    }
    const gone = new ClientClosedError(`the client went away (${how})`, this.#budget.details)
    this.#endBy(this.deadline.reason ?? gone, how)
  }

  #endBy(reason: TimeBudgetError | undefined, goneBy?: string): void {
    if (reason === undefined || this.#isOver) return
    this.#isOver = true
    this.#reason = reason
    this.#tellEnded?.(reason)
    this.#budget.entry.cancel(reason)
    this.#close(reason.outcome, reason.code === 'CLIENT_CLOSED' ? goneBy : undefined)
  }

  #close(outcome: Outcome, goneBy?: string): void {
    this.#isOver = true
    this.#tellEnded = undefined
    this.#budget.settle({ outcome, status: undefined, goneBy })
  }

  #noteLate(): void {
    if (this.#reason !== undefined && this.#reason.code !== 'CLIENT_CLOSED') this.#budget.noteLate()
  }
}
