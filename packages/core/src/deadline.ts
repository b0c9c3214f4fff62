import { adopt } from './adopt.ts'
import type { DeadlineWatcher } from './deadline-watcher.ts'
import { type Clock, systemClock } from './clock.ts'
import { internals, provideInternals } from './deadline-internals.ts'
import { DeadlineLinks } from './deadline-links.ts'
import {
  type ChildOptions,
  childOptionNames,
  clockFor,
  deadlineOptionNames,
  type DeadlineOptions,
} from './deadline-options.ts'
import { DeadlineOrigin } from './deadline-origin.ts'
import { timersOf } from './deadline-timers.ts'
import { type Duration, type Floor, parseDuration, parseFloor, wholeMilliseconds } from './duration.ts'
import type { TimeBudgetError } from './errors.ts'
import { refuseUnknownOptions } from './known-options.ts'
import { Ledger } from './ledger.ts'
import { LimitedWork } from './limited-work.ts'
import { budgetTooSmall, cancellation, timeIsUp } from './reasons.ts'
import { abortUnder, controllerOf } from './signal-deadline.ts'
import type { TimerBucket } from './timer-bucket.ts'
import { defaultSkewTolerance } from './wire/skew.ts'

export { adopt, internals }

/** Between what a new deadline lies; monotonic milliseconds. */
interface Bounds {
  readonly startedAt: number
  /** May be negative: what comes over the wire can lie in the past. */
  readonly timeout: number
  /** It ends no later. */
  readonly latest: number
}

/**
 * The moment at which a piece of work must be finished. It knows what is left, aborts its signal then, hands out
 * narrower children, and keeps the ledger of the request. Nothing is armed until somebody asks for the signal.
 */
export class Deadline {
  /** Milliseconds granted here. */
  readonly budget: number
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #endsAt: number
  readonly #parent: Deadline | undefined
  readonly #work: LimitedWork | undefined
  #origin: DeadlineOrigin | undefined
  #ending: { readonly reason: TimeBudgetError; readonly at: number } | undefined
  /** Settled: its work is over, or all who had to hear of its end have; it holds nothing any more. */
  #state: 'open' | 'holding the process' | 'settled' = 'open'
  /** Where it is in its timers, while it is. */
  #bucket: TimerBucket<Deadline> | undefined
  #place = 0
  #watcher: DeadlineWatcher | undefined
  #links: DeadlineLinks | undefined
  #ledger: Ledger | undefined

  private constructor(
    clock: Clock,
    parent: Deadline | undefined,
    { startedAt, timeout, latest }: Bounds,
    work: LimitedWork | undefined,
  ) {
    // not endsAt - startedAt: 2000 ms from 35.7 ms on would come to a little more than 2000
    this.budget = Math.max(0, Math.min(timeout, latest - startedAt))
    this.#clock = clock
    this.#startedAt = startedAt
    this.#endsAt = Math.min(startedAt + timeout, latest)
    this.#parent = parent
    this.#work = work
  }

  /**
   * A deadline that many milliseconds from now.
   * @throws TypeError when the budget is NaN, negative or unreadable, or an option does not exist.
   */
  static after(budget: Duration, options: DeadlineOptions = {}): Deadline {
    return Deadline.#make(parseDuration(budget, 'budget'), options)
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
    const deadline = Deadline.#make(moment - clockFor(options).epoch(), options)
    deadline.#knownOrigin().epochMs = moment
    return deadline
  }

  static #make(timeout: number, options: DeadlineOptions): Deadline {
    refuseUnknownOptions(options, deadlineOptionNames)
    const { label, signal } = options
    const clock = clockFor(options)
    const startedAt = clock.now()
    const parent = options.parent === undefined ? undefined : adopt(options.parent)
    const latest = parent === undefined ? Infinity : parent.#endsAt
    const work = label === undefined ? undefined : new LimitedWork(label, { isOperation: false })
    const deadline = new Deadline(clock, parent, { startedAt, timeout, latest }, work)
    if (signal !== undefined) deadline.#follow(signal)
    return deadline
  }

  static {
    provideInternals({
      isOurs: (value) => #endsAt in value,
      momentOf: (deadline) => deadline.#endsAt,
      place(deadline, bucket, place) {
        deadline.#bucket = bucket
        deadline.#place = place
      },
      fire(deadline) {
        deadline.#bucket = undefined
        deadline.#fire()
      },
      watch(deadline, watcher, { hold, isJustMade = false }) {
        if (!deadline.#arm(isJustMade ? deadline.#startedAt : deadline.#clock.now()))
          return deadline.#ending?.reason
        deadline.#watcher = watcher
        if (hold) deadline.#hold()
        return undefined
      },
      claim(deadline, reason) {
        const now = deadline.#clock.now()
        return deadline.#observe(now) ?? deadline.#end(reason, now)
      },
      fromWire({ remaining: timeout, epochMs, skewTolerance, clock = systemClock }) {
        const startedAt = clock.now()
        const bounds = { startedAt, timeout, latest: Infinity }
        const deadline = new Deadline(clock, undefined, bounds, undefined)
        if (epochMs !== undefined) deadline.#knownOrigin().epochMs = epochMs
        if (skewTolerance !== defaultSkewTolerance) deadline.#knownOrigin().skewTolerance = skewTolerance
        return deadline
      },
      follow: (deadline, signal) => deadline.#follow(signal),
      originOf: (deadline) => deadline.#knownOrigin(),
      forOperation(parent, { name, timeout, reserve, signal }) {
        const work = new LimitedWork(name, { isOperation: true })
        const deadline = (parent ?? Deadline.after(Infinity)).#narrow(timeout, reserve, work)
        if (signal !== undefined) deadline.#follow(signal)
        return deadline
      },
      operationOf(deadline) {
        const parent = deadline.#parent
        return deadline.#work?.entry ?? (parent === undefined ? undefined : internals.operationOf(parent))
      },
      setOperation(deadline, operation) {
        if (deadline.#work !== undefined) deadline.#work.entry = operation
      },
      setAttempt(deadline, attempt) {
        if (attempt !== deadline.attempt) deadline.#knownOrigin().attempt = attempt
      },
      startOf: (deadline) => deadline.#startedAt,
      reasonAt: (deadline, now) => deadline.#observe(now),
      remainingAt: (deadline, now) => deadline.#remainingAt(now),
      clockOf: (deadline) => deadline.#clock,
      spareContext(deadline) {
        deadline.#knownOrigin().sparesContext = true
      },
      sparesContext(deadline) {
        const parent = deadline.#parent
        return deadline.#origin?.sparesContext ?? (parent !== undefined && internals.sparesContext(parent))
      },
    })
  }

  /** A name for messages and traces. */
  get label(): string | undefined {
    return this.#work?.label
  }

  /** Unix epoch milliseconds of the end, for the wire only; the value received, while it agrees with our own clock. */
  get expiresAt(): number {
    const limit = this.#limit
    if (limit !== this) return limit.expiresAt
    const own = Math.floor(this.#clock.epoch() + this.#endsAt - this.#clock.now())
    return this.#knownOrigin().agreedEnd(own, this.#skewTolerance)
  }

  /**
   * Which attempt of the same work this is, from 1: its own number, or that of the work it is part of, here or at the
   * caller's. Travels as `X-Request-Attempt`, so that nobody retries inside a retry.
   */
  get attempt(): number {
    return Math.max(this.#origin?.attempt ?? 1, this.#parent?.attempt ?? 1)
  }

  /** Aborts when the deadline ends, with the reason; never because the work went well. Made on first use. */
  get signal(): AbortSignal {
    const links = this.#knownLinks()
    if (links.controller !== undefined) return links.controller.signal
    const controller = controllerOf(this)
    links.controller = controller
    const now = this.#clock.now()
    const reason = this.#observe(now)
    if (reason !== undefined) controller.abort(reason)
    else this.#arm(now)
    return controller.signal
  }

  /** What each operation of the request was given, spent, and how it ended; one for a deadline and all its children. */
  get ledger(): Ledger {
    if (this.#parent !== undefined) return this.#parent.ledger
    this.#ledger ??= new Ledger(this.#clock, this.#startedAt)
    return this.#ledger
  }

  /** Milliseconds left, never negative; 0 once cancelled. */
  remaining(): number {
    return this.#remainingAt(this.#clock.now())
  }

  /** Milliseconds since it was made. */
  elapsed(): number {
    return this.#clock.now() - this.#startedAt
  }

  /** Whether it has passed or was cancelled. */
  get expired(): boolean {
    return this.reason !== undefined
  }

  /** Why it ended; the first cause, the same here and in every child. */
  get reason(): TimeBudgetError | undefined {
    return this.#ending?.reason ?? this.#observe(this.#clock.now())
  }

  /**
   * The lesser of `want` and what is left, in whole milliseconds: for clients that take a timeout.
   * @throws the reason, once it has ended.
   */
  timeoutFor(want: Duration): number {
    return wholeMilliseconds(Math.min(parseDuration(want, 'want'), this.#assertRunning()))
  }

  /**
   * Passes if at least the floor is left.
   * @throws BudgetTooSmallError if less is left; the reason, once it has ended.
   */
  assertRemaining(floor: Floor, operation?: string): void {
    const remaining = this.#assertRunning()
    const needed = parseFloor(floor, 'floor', remaining)
    if (remaining < needed) throw budgetTooSmall({ operation, needed, remaining, of: this })
  }

  /**
   * A narrower deadline: ends no later than this one, after its own timeout, or `reserve` before this one.
   * @throws TypeError when an option does not exist or is unreadable.
   */
  child(options: ChildOptions): Deadline {
    refuseUnknownOptions(options, childOptionNames)
    const { timeout, reserve, label } = options
    const isOperation = timeout !== undefined || reserve !== undefined
    return this.#narrow(
      timeout === undefined ? Infinity : parseDuration(timeout, 'timeout'),
      reserve === undefined ? 0 : parseDuration(reserve, 'reserve'),
      isOperation || label !== undefined ? new LimitedWork(label, { isOperation }) : undefined,
    )
  }

  /** Ends it now; the reason is ours as it is, anything else becomes the cause of a CancelledError. */
  cancel(reason?: unknown): void {
    if (this.#state === 'settled') return
    const now = this.#clock.now()
    if (this.#observe(now) === undefined) {
      this.#end(cancellation(reason, { budget: this.budget, elapsed: now - this.#startedAt }), now)
    }
    this.#notify()
  }

  /** The work is over: timers, links and listeners are gone and the signal will not abort any more. */
  settle(): void {
    if (this.#state === 'settled') return
    this.#letGo()
    let below = this.#links?.takeBelow()
    if (below === undefined) return
    const heir = Deadline.#liveAbove(this.#parent, this.#clock.now())
    for (; below !== undefined; below = this.#links?.takeBelow()) {
      // where those above have ended, and are just telling so, they no longer reach what was below
      if (heir === undefined) below.#fire()
      else below.#joinUnder(heir)
    }
  }

  /** Settles it at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.settle()
  }

  /** Whose end this is: its own, or an ancestor's that leaves no more. */
  get #limit(): Deadline {
    const parent = this.#parent
    return parent !== undefined && parent.#endsAt === this.#endsAt ? parent.#limit : this
  }

  get #skewTolerance(): number {
    const own = this.#origin?.skewTolerance
    if (own !== undefined || this.#parent === undefined) return own ?? defaultSkewTolerance
    return this.#parent.#skewTolerance
  }

  #knownOrigin(): DeadlineOrigin {
    this.#origin ??= new DeadlineOrigin()
    return this.#origin
  }

  #knownLinks(): DeadlineLinks {
    this.#links ??= new DeadlineLinks(this)
    return this.#links
  }

  #remainingAt(now: number): number {
    return this.#observe(now) === undefined ? this.#left(now) : 0
  }

  #left(now: number): number {
    return Math.max(0, Math.min(this.budget, this.#endsAt - now))
  }

  /** What is left; throws the reason once it has ended. */
  #assertRunning(): number {
    const now = this.#clock.now()
    const reason = this.#observe(now)
    if (reason !== undefined) throw reason
    return this.#left(now)
  }

  #narrow(timeout: number, reserve: number, work: LimitedWork | undefined): Deadline {
    const startedAt = this.#clock.now()
    // Infinity minus an infinite reserve is no number
    const latest = reserve === Infinity ? startedAt : this.#endsAt - reserve
    return new Deadline(this.#clock, this, { startedAt, timeout, latest }, work)
  }

  /** The reason as the clock and the ancestors have it by now, whether or not a timer has run. */
  #observe(now: number): TimeBudgetError | undefined {
    if (this.#ending !== undefined) return this.#ending.reason
    const parent = this.#parent
    // by the same reading of the clock: between two of them the parent's time, which is also this one's, may run out
    if (parent !== undefined && parent.#observe(now) !== undefined) {
      const ending = parent.#ending
      if (ending !== undefined && ending.at <= this.#ownEnd) return this.#end(ending.reason, ending.at)
    }
    const told = this.#origin?.other?.reason
    if (told !== undefined) return this.#end(told, Math.min(now, this.#endsAt))
    if (now < this.#endsAt) return undefined
    const left = parent === undefined ? 0 : Math.max(0, parent.#endsAt - now)
    const ofOperation = this.#work?.isOperation === true
    return this.#end(timeIsUp(this, { ofOperation, left }), this.#ownEnd)
  }

  /** When its own time is up; with a reserve larger than what is left, not before it was made. */
  get #ownEnd(): number {
    return Math.max(this.#endsAt, this.#startedAt)
  }

  #end(reason: TimeBudgetError, at: number): TimeBudgetError {
    this.#ending = { reason, at }
    return reason
  }

  #fire(): void {
    // whoever set the limit acts first: the answer is on its way before the work hears of it
    const limit = this.#limit
    if (limit !== this && limit.#state !== 'settled') limit.#fire()
    if (this.#watcher?.isOver() === true) this.settle()
    else this.#tell()
  }

  #tell(): void {
    if (this.#observe(this.#clock.now()) !== undefined) this.#notify()
  }

  /** Tells everybody once: first the watcher, then the listeners of the signal, then the children. */
  #notify(): void {
    if (this.#state === 'settled' || this.#ending === undefined) return
    const { reason } = this.#ending
    const watcher = this.#watcher
    this.#letGo()
    watcher?.deadlineEnded(reason)
    const links = this.#links
    if (links === undefined) return
    if (links.controller !== undefined) abortUnder(this, links.controller, reason)
    for (let below = links.takeBelow(); below !== undefined; below = links.takeBelow()) below.#tell()
  }

  /** Gives back what `#arm`, `watch` and `#follow` took; what is below is left to the caller. */
  #letGo(): void {
    if (this.#state === 'holding the process') timersOf(this.#clock, internals).release()
    this.#state = 'settled'
    this.#watcher = undefined
    this.#links?.leave()
    this.#links?.unfollow()
    this.#bucket?.remove(this.#place)
    this.#bucket = undefined
  }

  #follow(signal: AbortSignal): void {
    if (this.#arm(this.#clock.now())) this.#knownLinks().follow(signal, () => this.cancel(signal.reason))
  }

  /** Sets its timer and joins those above, if it has not; `false` once it has ended or is settled. */
  #arm(now: number): boolean {
    if (this.#state === 'settled' || this.#observe(now) !== undefined) return false
    if (this.#parent !== undefined && this.#links?.isUnderAnother !== true) {
      const above = Deadline.#liveAbove(this.#parent, now)
      if (above !== undefined) this.#joinUnder(above)
    }
    if (this.#bucket === undefined && this.#endsAt !== Infinity && this.#origin?.other === undefined) {
      timersOf(this.#clock, internals).add(this, now)
    }
    return true
  }

  /** Keeps the process alive until it ends or is settled. */
  #hold(): void {
    if (this.#bucket === undefined || this.#state !== 'open') return
    this.#state = 'holding the process'
    timersOf(this.#clock, internals).hold()
  }

  #joinUnder(above: Deadline): void {
    this.#knownLinks().joinUnder(above.#knownLinks())
  }

  /** The nearest of the deadline and its ancestors that is not settled, armed; nothing if it has ended. */
  static #liveAbove(deadline: Deadline | undefined, now: number): Deadline | undefined {
    let above = deadline
    while (above !== undefined && above.#state === 'settled' && above.#ending === undefined)
      above = above.#parent
    return above !== undefined && above.#arm(now) ? above : undefined
  }
}
