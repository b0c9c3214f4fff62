import { setMaxListeners } from 'node:events'
import type { Clock } from './clock.ts'
import { systemClock } from './clock.ts'
import { Armed } from './armed.ts'
import type { DeadlineInternals } from './deadline-internals.ts'
import { timersOf } from './deadline-timers.ts'
import type { Duration, Floor } from './duration.ts'
import { parseDuration, parseFloor, wholeMilliseconds } from './duration.ts'
import type { TimeBudgetError } from './errors.ts'
import { refuseUnknownOptions } from './known-options.ts'
import { Ledger, type LedgerEntry } from './ledger.ts'
import { budgetTooSmall, cancellation, timeIsUp } from './reasons.ts'
import { tie } from './signal-deadline.ts'
import { defaultSkewTolerance } from './wire/skew.ts'

/** What a new deadline is bound to. */
export interface DeadlineOptions {
  /** The new deadline ends no later than this one, and with it. */
  readonly parent?: Deadline | undefined
  /** Ends the deadline when it aborts. */
  readonly signal?: AbortSignal | undefined
  /** A name for messages and traces. */
  readonly label?: string | undefined
  /** Where time comes from; the parent's clock, else the process's own. */
  readonly clock?: Clock | undefined
}

/** How a child is narrower than its parent. */
export interface ChildOptions {
  readonly timeout?: Duration | undefined
  /** Time kept back from the child for what comes after it. */
  readonly reserve?: Duration | undefined
  readonly label?: string | undefined
}

const optionNames = ['parent', 'signal', 'label', 'clock'] as const satisfies (keyof DeadlineOptions)[]
const childOptionNames = ['timeout', 'reserve', 'label'] as const satisfies (keyof ChildOptions)[]

interface DeadlineShape {
  readonly clock: Clock
  readonly parent: Deadline | undefined
  readonly budget: number
  readonly startedAt: number
  readonly endsAt: number
  readonly label: string | undefined
  /** Whether running out of it is an operation's timeout rather than the request's deadline. */
  readonly ofOperation: boolean
  readonly epochMs?: number | undefined
  readonly skewTolerance: number
}

export let internals: DeadlineInternals

/**
 * The moment at which a piece of work must be finished. It knows what is left, aborts its signal then, hands out
 * narrower children, and keeps the ledger of the request. Nothing is armed until somebody asks for the signal.
 */
export class Deadline {
  /** Milliseconds granted here. */
  readonly budget: number
  readonly label: string | undefined
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #endsAt: number
  readonly #parent: Deadline | undefined
  /** Whose end this is: its own, or an ancestor's that leaves no more. */
  readonly #limit: Deadline
  readonly #ofOperation: boolean
  readonly #skewTolerance: number
  /** Another copy's deadline, whose end this is: its reason counts, and its timer. */
  #other: Deadline | undefined
  #epochMs: number | undefined
  #reason: TimeBudgetError | undefined
  #endedAt: number | undefined
  #settled = false
  #sparesContext = false
  #attempt = 1
  #controller: AbortController | undefined
  #armed: Armed | undefined
  #ledger: Ledger | undefined
  #operation: LedgerEntry | undefined

  private constructor(shape: DeadlineShape) {
    this.budget = shape.budget
    this.label = shape.label
    this.#clock = shape.clock
    this.#startedAt = shape.startedAt
    this.#endsAt = shape.endsAt
    this.#parent = shape.parent
    this.#ofOperation = shape.ofOperation
    this.#epochMs = shape.epochMs
    this.#skewTolerance = shape.skewTolerance
    const parent = shape.parent
    this.#limit = parent !== undefined && parent.#endsAt === shape.endsAt ? parent.#limit : this
  }

  /**
   * A deadline that many milliseconds from now.
   * @throws TypeError when the budget is NaN, negative or unreadable, or an option does not exist.
   */
  static after(budget: Duration, options: DeadlineOptions = {}): Deadline {
    return Deadline.#make(parseDuration(budget, 'budget'), options, undefined)
  }

  /**
   * The deadline at a Unix epoch moment, from the wire or a job record; it may lie in the past.
   * @throws TypeError when the moment is no number or an invalid date, or an option does not exist.
   */
  static at(epochMs: number | Date, options: DeadlineOptions = {}): Deadline {
    const moment = epochMs instanceof Date ? epochMs.getTime() : epochMs
    // null is what JSON makes of Infinity: as a number it would be 1970
    if (typeof moment !== 'number' || Number.isNaN(moment))
      throw new TypeError(`epochMs: expected Unix epoch milliseconds or a valid Date`)
    return Deadline.#make(moment - clockFor(options).epoch(), options, moment)
  }

  static #make(remaining: number, options: DeadlineOptions, epochMs: number | undefined): Deadline {
    refuseUnknownOptions(options, optionNames)
    const clock = clockFor(options)
    const startedAt = clock.now()
    const parent = options.parent === undefined ? undefined : adopt(options.parent)
    const latest = parent === undefined ? Infinity : parent.#endsAt
    const endsAt = Math.min(startedAt + remaining, latest)
    const deadline = new Deadline({
      clock,
      parent,
      budget: Math.max(0, Math.min(remaining, latest - startedAt)),
      startedAt,
      endsAt,
      label: options.label,
      ofOperation: false,
      epochMs,
      skewTolerance: parent === undefined ? defaultSkewTolerance : parent.#skewTolerance,
    })
    if (options.signal !== undefined) deadline.#follow(options.signal)
    return deadline
  }

  static {
    internals = {
      isOurs: (value) => #endsAt in value,
      fire: (deadline) => deadline.#fire(),
      observe: (deadline) => deadline.#observe(),
      watch(deadline, watcher, { hold, isJustMade = false }) {
        const armed = deadline.#arm({ hold }, isJustMade ? deadline.#startedAt : deadline.#clock.now())
        if (armed === undefined) return deadline.#reason
        armed.watcher = watcher
        return undefined
      },
      claim: (deadline, reason) => deadline.#observe() ?? deadline.#end(reason, deadline.#clock.now()),
      fromWire({ remaining, epochMs, skewTolerance, clock = systemClock }) {
        const startedAt = clock.now()
        return new Deadline({
          clock,
          parent: undefined,
          budget: Math.max(0, remaining),
          startedAt,
          endsAt: startedAt + remaining,
          label: undefined,
          ofOperation: false,
          epochMs,
          skewTolerance,
        })
      },
      following(other) {
        const deadline = internals.fromWire({
          remaining: other.remaining(),
          epochMs: other.expiresAt,
          skewTolerance: defaultSkewTolerance,
          clock: systemClock,
        })
        deadline.#other = other
        deadline.#follow(other.signal)
        return deadline
      },
      forOperation(parent, options) {
        const deadline = (parent ?? Deadline.after(Infinity)).#narrow(options, { ofOperation: true })
        if (options.signal !== undefined) deadline.#follow(options.signal)
        return deadline
      },
      operationOf(deadline) {
        for (let holder: Deadline | undefined = deadline; holder !== undefined; holder = holder.#parent) {
          if (holder.#operation !== undefined) return holder.#operation
        }
        return undefined
      },
      setOperation(deadline, operation) {
        deadline.#operation = operation
      },
      setAttempt(deadline, attempt) {
        deadline.#attempt = attempt
      },
      clockOf: (deadline) => deadline.#clock,
      spareContext(deadline) {
        deadline.#sparesContext = true
      },
      sparesContext(deadline) {
        const parent = deadline.#parent
        return deadline.#sparesContext || (parent !== undefined && internals.sparesContext(parent))
      },
    }
  }

  /** Unix epoch milliseconds of the end, for the wire only; the value received, while it agrees with our own clock. */
  get expiresAt(): number {
    if (this.#limit !== this) return this.#limit.expiresAt
    const own = Math.floor(this.#clock.epoch() + this.#endsAt - this.#clock.now())
    const ahead = own - (this.#epochMs ?? Infinity)
    // 1 ms: what two readings of a clock that counts whole milliseconds differ by
    if (!(ahead >= -1 && ahead <= this.#skewTolerance)) this.#epochMs = own
    return this.#epochMs ?? own
  }

  /**
   * Which attempt of the same work this is, from 1: its own number, or that of the work it is part of, here or at the
   * caller's. Travels as `X-Request-Attempt`, so that nobody retries inside a retry.
   */
  get attempt(): number {
    return Math.max(this.#attempt, this.#parent?.attempt ?? 1)
  }

  /** Aborts when the deadline ends, with the reason; never because the work went well. Made on first use. */
  get signal(): AbortSignal {
    this.#controller ??= this.#makeController()
    return this.#controller.signal
  }

  /** What each operation of the request was given, spent, and how it ended; one for a deadline and all its children. */
  get ledger(): Ledger {
    if (this.#parent !== undefined) return this.#parent.ledger
    this.#ledger ??= new Ledger(() => this.#clock.now(), this.#startedAt)
    return this.#ledger
  }

  /** Milliseconds left, never negative; 0 once cancelled. */
  remaining(): number {
    return this.#observe() === undefined ? this.#left() : 0
  }

  /** Milliseconds since it was made. */
  elapsed(): number {
    return this.#clock.now() - this.#startedAt
  }

  /** Whether it has passed or was cancelled. */
  get expired(): boolean {
    return this.#observe() !== undefined
  }

  /** Why it ended; the first cause, the same here and in every child. */
  get reason(): TimeBudgetError | undefined {
    return this.#observe()
  }

  /**
   * The lesser of `want` and what is left, in whole milliseconds: for clients that take a timeout.
   * @throws the reason, once it has ended.
   */
  timeoutFor(want: Duration): number {
    const timeout = parseDuration(want, 'want')
    this.#assertRunning()
    return wholeMilliseconds(Math.min(timeout, this.#left()))
  }

  /**
   * Passes if at least the floor is left.
   * @throws BudgetTooSmallError if less is left; the reason, once it has ended.
   */
  assertRemaining(floor: Floor, operation?: string): void {
    this.#assertRunning()
    const remaining = this.#left()
    const needed = parseFloor(floor, 'floor', remaining)
    if (remaining < needed) throw budgetTooSmall({ operation, needed, remaining, of: this })
  }

  /**
   * A narrower deadline: ends no later than this one, after its own timeout, or `reserve` before this one.
   * @throws TypeError when an option does not exist or is unreadable.
   */
  child(options: ChildOptions): Deadline {
    refuseUnknownOptions(options, childOptionNames)
    return this.#narrow(options, {
      ofOperation: options.timeout !== undefined || options.reserve !== undefined,
    })
  }

  /** Ends it now; the reason is ours as it is, anything else becomes the cause of a CancelledError. */
  cancel(reason?: unknown): void {
    if (this.#settled) return
    if (this.#observe() === undefined) {
      this.#end(cancellation(reason, { budget: this.budget, elapsed: this.elapsed() }), this.#clock.now())
    }
    this.#notify()
  }

  /** The work is over: timers, links and listeners are gone and the signal will not abort any more. */
  settle(): void {
    if (this.#settled) return
    this.#settled = true
    const armed = this.#armed
    this.#armed = undefined
    if (armed !== undefined) armed.release(Deadline.#liveAbove(this.#parent))
  }

  /** Settles it at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.settle()
  }

  #left(): number {
    return Math.max(0, Math.min(this.budget, this.#endsAt - this.#clock.now()))
  }

  #assertRunning(): void {
    const reason = this.#observe()
    if (reason !== undefined) throw reason
  }

  #narrow(options: ChildOptions, { ofOperation }: { readonly ofOperation: boolean }): Deadline {
    const now = this.#clock.now()
    const timeout = options.timeout === undefined ? Infinity : parseDuration(options.timeout, 'timeout')
    const reserve = options.reserve === undefined ? 0 : parseDuration(options.reserve, 'reserve')
    // Infinity minus an infinite reserve is no number
    const latest = reserve === Infinity ? now : this.#endsAt - reserve
    const endsAt = Math.min(now + timeout, latest)
    return new Deadline({
      clock: this.#clock,
      parent: this,
      // not endsAt - now: 2000 ms from 35.7 ms on would come to a little more than 2000
      budget: Math.max(0, Math.min(timeout, latest - now)),
      startedAt: now,
      endsAt,
      label: options.label,
      ofOperation,
      skewTolerance: this.#skewTolerance,
    })
  }

  /** The reason as the clock and the ancestors have it by now, whether or not a timer has run. */
  #observe(now: number = this.#clock.now()): TimeBudgetError | undefined {
    if (this.#reason !== undefined) return this.#reason
    const parent = this.#parent
    if (parent !== undefined) {
      // by the same reading of the clock: between two of them the parent's time, which is also this one's, may run out
      const inherited = parent.#observe(now)
      const endedAt = parent.#endedAt
      if (inherited !== undefined && endedAt !== undefined && endedAt <= this.#ownEnd)
        return this.#end(inherited, endedAt)
    }
    const told = this.#other?.reason
    if (told !== undefined) return this.#end(told, Math.min(now, this.#endsAt))
    if (now < this.#endsAt) return undefined
    const left = parent === undefined ? 0 : Math.max(0, parent.#endsAt - now)
    return this.#end(timeIsUp(this, { ofOperation: this.#ofOperation, left }), this.#ownEnd)
  }

  /** When its own time is up; with a reserve larger than what is left, not before it was made. */
  get #ownEnd(): number {
    return Math.max(this.#endsAt, this.#startedAt)
  }

  #end(reason: TimeBudgetError, at: number): TimeBudgetError {
    this.#reason = reason
    this.#endedAt = at
    return reason
  }

  #fire(): void {
    // whoever set the limit acts first: the answer is on its way before the work hears of it
    if (this.#limit !== this && !this.#limit.#settled) this.#limit.#fire()
    if (this.#armed?.watcher?.isOver() === true) this.settle()
    else if (this.#observe() !== undefined) this.#notify()
  }

  #notify(): void {
    const armed = this.#armed
    this.#armed = undefined
    if (armed !== undefined && this.#reason !== undefined) armed.notify(this.#reason)
  }

  #makeController(): AbortController {
    const controller = new AbortController()
    const { signal } = controller
    tie(signal, this)
    // one request may well make fifty calls; no 0, on which Node 20's getMaxListeners throws, and undici's Request with it
    setMaxListeners(Infinity, signal)
    const reason = this.#observe()
    if (reason !== undefined) controller.abort(reason)
    else {
      const armed = this.#arm({ hold: false })
      if (armed !== undefined) armed.controller = controller
    }
    return controller
  }

  #follow(signal: AbortSignal): void {
    this.#arm({ hold: false })?.followSignal(signal, () => this.cancel(signal.reason))
  }

  /** Timer and links, made on first use; nothing once it has ended or is settled. */
  #arm({ hold }: { readonly hold: boolean }, now: number = this.#clock.now()): Armed | undefined {
    if (this.#settled) return undefined
    if (this.#observe(now) !== undefined) return undefined
    if (this.#armed === undefined) {
      const at = this.#other === undefined ? this.#endsAt : Infinity
      this.#armed = new Armed(this, internals, timersOf(this.#clock), at)
      this.#armed.joinUnder(Deadline.#liveAbove(this.#parent))
    }
    this.#armed.start({ hold, now })
    return this.#armed
  }

  /** The nearest of the deadline and its ancestors that is not settled, armed. */
  static #liveAbove(deadline: Deadline | undefined): Armed | undefined {
    let above = deadline
    while (above !== undefined && above.#settled) above = above.#parent
    return above === undefined ? undefined : above.#arm({ hold: false })
  }
}

function clockFor({ clock, parent }: DeadlineOptions): Clock {
  if (clock !== undefined) return clock
  return parent !== undefined && internals.isOurs(parent) ? internals.clockOf(parent) : systemClock
}

// One for each, so that the operations of one request share a ledger and a listener here too.
const adopted = new WeakMap<Deadline, Deadline>()

/** A deadline that another copy of this package made, as one of ours. */
export function adopt(deadline: Deadline): Deadline {
  if (internals.isOurs(deadline)) return deadline
  let ours = adopted.get(deadline)
  if (ours === undefined) {
    ours = internals.following(deadline)
    adopted.set(deadline, ours)
  }
  return ours
}
