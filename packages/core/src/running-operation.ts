import type { DeadlineWatcher } from './deadline-watcher.ts'
import { currentDeadline, runWithDeadline } from './current.ts'
import { adopt, type Deadline, internals } from './deadline.ts'
import {
  type Duration,
  type Floor,
  isLearned,
  parseDuration,
  parseFloor,
  teachFloor,
  wholeMilliseconds,
} from './duration.ts'
import { findTimeBudgetError, outcomeOf, type TimeBudgetError } from './errors.ts'
import { type OperationFinished, operationFinished, operationStarted, workLate } from './events.ts'
import { refuseUnknownOptions } from './known-options.ts'
import type { LedgerEntry } from './ledger.ts'
import type { Outcome } from './outcome.ts'
import { budgetTooSmall } from './reasons.ts'
import { runWrapped, type WorkWrapper } from './work-wrapper.ts'

/** What an operation may take. */
export interface OperationOptions {
  /** Its own limit; never more than what is left of the request. */
  readonly timeout?: Duration | undefined
  /** Not worth starting with less than this. */
  readonly floor?: Floor | undefined
  /** Kept back for what comes after it. */
  readonly reserve?: Duration | undefined
  /** The deadline it stands under, in place of the ambient one. */
  readonly deadline?: Deadline | undefined
  /** Cancels it when it aborts; its reason becomes the cause, unless it is one of ours. */
  readonly signal?: AbortSignal | undefined
  /** Which attempt of the same work it is, from 1; its calls tell the hops behind. */
  readonly attempt?: number | undefined
}

const optionNames = [
  'timeout',
  'floor',
  'reserve',
  'deadline',
  'signal',
  'attempt',
] as const satisfies (keyof OperationOptions)[]

/** What the work of an operation gets. */
export interface OperationScope {
  readonly deadline: Deadline
  readonly signal: AbortSignal
  /** Whole milliseconds it may take, at least 1, `Infinity` if nothing bounds it; for clients that take a timeout. */
  readonly timeout: number
}

/**
 * An operation that has begun. It ends once: by `end`, by `fail`, or by its deadline, whichever comes first.
 * `operation()` does all of this for a function; this is for work whose end is elsewhere, such as a stream's.
 */
export class RunningOperation implements OperationScope, DeadlineWatcher {
  readonly deadline: Deadline
  readonly entry: LedgerEntry
  #cutOff: ((reason: TimeBudgetError) => void) | undefined
  #over = false
  #endedBy: TimeBudgetError | undefined
  #wrap: WorkWrapper | undefined
  readonly #floor: Floor | undefined

  constructor(deadline: Deadline, entry: LedgerEntry, floor?: Floor) {
    this.deadline = deadline
    this.#floor = floor
    this.entry = entry
    internals.setOperation(deadline, entry)
    const isObserved = operationStarted.observed
    if (isObserved) this.#announce()
    const reason = internals.watch(deadline, this, { hold: true, isJustMade: !isObserved })
    if (reason !== undefined) this.deadlineEnded(reason)
  }

  get timeout(): number {
    return wholeMilliseconds(this.deadline.budget)
  }

  get signal(): AbortSignal {
    return this.deadline.signal
  }

  /** Ends it; returns the deadline's reason if that came first, and `undefined` if this is the end. The first call counts. */
  end(outcome: Outcome = 'ok', error?: unknown): TimeBudgetError | undefined {
    if (this.#over) return this.#endedBy
    const now = internals.clockOf(this.deadline).now()
    const reason = internals.reasonAt(this.deadline, now)
    this.#endedBy = reason
    this.#close(reason?.outcome ?? outcome, reason ?? error, now)
    if (reason === undefined) this.deadline.settle()
    else this.deadline.cancel()
    return reason
  }

  /** Ends it with a failure; returns what to throw: the deadline's reason if that came first, else the error itself. */
  fail(error: unknown): unknown {
    return this.end(outcomeOf(error), error) ?? error
  }

  /** Calls back once if the deadline, or whoever cancels it, ends the operation first; costs less than its signal. */
  onCutOff(callback: (reason: TimeBudgetError) => void): void {
    if (this.#endedBy !== undefined) callback(this.#endedBy)
    else this.#cutOff = callback
  }

  /** Runs the work in this operation and ends the operation with it; what the work does after the end is swallowed. */
  run<T>(work: (scope: OperationScope) => Promise<T> | T): Promise<T> {
    if (this.#endedBy !== undefined) return Promise.reject(this.#endedBy)
    return new Promise<T>((resolve, reject) => {
      this.#cutOff = reject
      this.#begin(work).then(
        (value) => {
          const reason = this.#endedBy === undefined ? this.end() : this.#endLate(undefined)
          if (reason === undefined) resolve(value)
          else reject(reason)
        },
        (error: unknown) => {
          reject(this.#endedBy === undefined ? this.fail(error) : this.#endLate(error))
        },
      )
    })
  }

  /** Runs a part of its work that begins elsewhere, a client's call for instance, inside what observers have put around it. */
  within<T>(work: () => T): T {
    return this.#wrap === undefined ? work() : runWrapped(this.#wrap, work)
  }

  isOver(): boolean {
    return this.#over
  }

  deadlineEnded(reason: TimeBudgetError): void {
    if (this.#over) return
    this.#endedBy = reason
    this.#close(reason.outcome, reason, internals.clockOf(this.deadline).now())
    this.#cutOff?.(reason)
  }

  /** An async function in all but its cost, which is a tenth of an operation's on Node 20. */
  #begin<T>(work: (scope: OperationScope) => Promise<T> | T): Promise<T> {
    try {
      return Promise.resolve(this.#wrap === undefined ? this.#enter(work) : this.#enterWrapped(work))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #enter<T>(work: (scope: OperationScope) => Promise<T> | T): Promise<T> | T {
    return internals.sparesContext(this.deadline) ? work(this) : this.#enterContext(work)
  }

  #enterContext<T>(work: (scope: OperationScope) => Promise<T> | T): Promise<T> | T {
    return runWithDeadline(this.deadline, () => work(this))
  }

  #enterWrapped<T>(work: (scope: OperationScope) => Promise<T> | T): Promise<T> | T {
    return this.within(() => this.#enter(work))
  }

  #announce(): void {
    const { deadline, entry } = this
    operationStarted.publish(() => ({ deadline, entry, around: (wrap) => this.#around(wrap) }))
  }

  #around(wrap: WorkWrapper): void {
    const outer = this.#wrap
    this.#wrap = outer === undefined ? wrap : (work) => outer(() => wrap(work))
  }

  #close(outcome: Outcome, error: unknown, now: number): void {
    const { deadline, entry } = this
    this.#over = true
    deadline.ledger.close(entry, outcome, now)
    if (this.#floor !== undefined) teachFloor(this.#floor, { spent: entry.spent ?? 0, outcome })
    if (operationFinished.observed) announceEnd({ deadline, entry, error })
  }

  /** What the work comes to after its end is told to those who listen; returns the reason of that end. */
  #endLate(error: unknown): TimeBudgetError | undefined {
    const reason = this.#endedBy
    // work that heeds its signal fails with the reason, or with one that says the same: that is an end in time
    if (error === undefined || findTimeBudgetError(error)?.code !== reason?.code) this.#reportLate()
    return reason
  }

  #reportLate(): void {
    const lateBy = this.deadline.elapsed() - (this.entry.spent ?? 0)
    workLate.publish(() => ({
      kind: 'operation',
      operation: this.entry.path,
      deadline: this.deadline,
      lateBy,
    }))
  }
}

/**
 * Begins an operation under the given or ambient deadline; without one, under its own `timeout` alone.
 * @throws BudgetTooSmallError if less than the floor is left after the reserve; the deadline's reason if it has ended;
 *   TypeError if an option does not exist or is unreadable.
 */
export function startOperation(name: string, options: OperationOptions = {}): RunningOperation {
  refuseUnknownOptions(options, optionNames)
  const given = options.deadline ?? currentDeadline()
  const parent = given === undefined ? undefined : adopt(given)
  const reserve = options.reserve === undefined ? 0 : parseDuration(options.reserve, 'reserve')
  const timeout = options.timeout === undefined ? Infinity : parseDuration(options.timeout, 'timeout')
  const deadline = internals.forOperation(parent, { name, timeout, reserve, signal: options.signal })
  const now = internals.startOf(deadline)
  const remaining = internals.remainingAt(parent ?? deadline, now)
  // what is learned of the work is compared with the time that the work itself would get
  const available = Math.min(remaining - reserve, deadline.budget)
  const floor = options.floor === undefined ? 0 : readFloor(options.floor, available, deadline)
  if (options.attempt !== undefined) internals.setAttempt(deadline, options.attempt)
  const opening = {
    name,
    parent: parent === undefined ? undefined : internals.operationOf(parent),
    remaining,
    granted: deadline.budget,
    floor,
    reserve,
  }
  const entry = deadline.ledger.open(opening, now)
  const short =
    options.floor !== undefined && isLearned(options.floor) && available < floor
      ? { needed: floor, remaining: available, now }
      : { needed: floor + reserve, remaining, now }
  const refusal = refuse(name, parent, short) ?? internals.reasonAt(deadline, now)
  if (refusal === undefined) return new RunningOperation(deadline, entry, options.floor)
  deadline.settle()
  deadline.ledger.close(entry, refusal.outcome)
  announceEnd({ deadline, entry, error: refusal })
  throw refusal
}

function announceEnd(end: OperationFinished): void {
  operationFinished.publish(() => end)
}

/** A floor that cannot be read, or that throws, leaves nothing of the deadline behind that was made for the work. */
function readFloor(floor: Floor, available: number, deadline: Deadline): number {
  try {
    return parseFloor(floor, 'floor', available)
  } catch (error) {
    deadline.settle()
    throw error
  }
}

function refuse(
  operation: string,
  parent: Deadline | undefined,
  { needed, remaining, now }: { readonly needed: number; readonly remaining: number; readonly now: number },
): TimeBudgetError | undefined {
  if (parent === undefined) return undefined
  const reason = internals.reasonAt(parent, now)
  if (reason !== undefined || remaining >= needed) return reason
  return budgetTooSmall({ operation, needed, remaining, of: parent })
}
