import type { DeadlineWatcher } from './armed.ts'
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
import { operationFinished, operationStarted, workLate } from './events.ts'
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
  readonly timeout: number
  readonly entry: LedgerEntry
  #cutOff: ((reason: TimeBudgetError) => void) | undefined
  #over = false
  #endedBy: TimeBudgetError | undefined
  #wrap: WorkWrapper | undefined
  readonly #floor: Floor | undefined

  constructor(deadline: Deadline, entry: LedgerEntry, floor?: Floor) {
    this.deadline = deadline
    this.#floor = floor
    this.timeout = wholeMilliseconds(deadline.budget)
    this.entry = entry
    internals.setOperation(deadline, entry)
    operationStarted.publish(() => ({ deadline, entry, around: (wrap) => this.#around(wrap) }))
    const reason = internals.watch(deadline, this, { hold: true })
    if (reason !== undefined) this.deadlineEnded(reason)
  }

  get signal(): AbortSignal {
    return this.deadline.signal
  }

  /** Ends it; returns the deadline's reason if that came first, and `undefined` if this is the end. The first call counts. */
  end(outcome: Outcome = 'ok', error?: unknown): TimeBudgetError | undefined {
    if (this.#over) return this.#endedBy
    const reason = this.deadline.reason
    this.#endedBy = reason
    this.#close(reason?.outcome ?? outcome, reason ?? error)
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
      this.onCutOff(reject)
      this.#start(work).then(
        (value) => {
          if (this.#endedBy !== undefined) this.#reportLate(undefined)
          const reason = this.end()
          if (reason === undefined) resolve(value)
          else reject(reason)
        },
        (error: unknown) => {
          if (this.#endedBy !== undefined) this.#reportLate(error)
          reject(this.fail(error))
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
    this.#close(reason.outcome, reason)
    this.#cutOff?.(reason)
  }

  async #start<T>(work: (scope: OperationScope) => Promise<T> | T): Promise<T> {
    return this.#wrap === undefined ? this.#enter(work) : runWrapped(this.#wrap, () => this.#enter(work))
  }

  #enter<T>(work: (scope: OperationScope) => Promise<T> | T): Promise<T> | T {
    if (internals.sparesContext(this.deadline)) return work(this)
    return runWithDeadline(this.deadline, () => work(this))
  }

  #around(wrap: WorkWrapper): void {
    const outer = this.#wrap
    this.#wrap = outer === undefined ? wrap : (work) => outer(() => wrap(work))
  }

  #close(outcome: Outcome, error: unknown): void {
    this.#over = true
    this.deadline.ledger.close(this.entry, outcome)
    teachFloor(this.#floor, { spent: this.entry.spent ?? 0, outcome })
    operationFinished.publish(() => ({ deadline: this.deadline, entry: this.entry, error }))
  }

  #reportLate(error: unknown): void {
    // work that heeds its signal fails with the reason, or with one that says the same: that is an end in time
    if (error !== undefined && findTimeBudgetError(error)?.code === this.#endedBy?.code) return
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
  const deadline = internals.forOperation(parent, {
    timeout: options.timeout,
    reserve: options.reserve,
    label: name,
    signal: options.signal,
  })
  const remaining = parent === undefined ? deadline.remaining() : parent.remaining()
  // what is learned of the work is compared with the time that the work itself would get
  const available = Math.min(remaining - reserve, deadline.budget)
  const floor = options.floor === undefined ? 0 : readFloor(options.floor, available, deadline)
  if (options.attempt !== undefined) internals.setAttempt(deadline, options.attempt)
  const entry = deadline.ledger.open({
    name,
    parent: parent === undefined ? undefined : internals.operationOf(parent),
    remaining,
    granted: deadline.budget,
    floor,
    reserve,
  })
  const short =
    options.floor !== undefined && isLearned(options.floor) && available < floor
      ? { needed: floor, remaining: available }
      : { needed: floor + reserve, remaining }
  const refusal = refuse(name, parent, short) ?? deadline.reason
  if (refusal === undefined) return new RunningOperation(deadline, entry, options.floor)
  deadline.settle()
  deadline.ledger.close(entry, refusal.outcome)
  operationFinished.publish(() => ({ deadline, entry, error: refusal }))
  throw refusal
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
  { needed, remaining }: { readonly needed: number; readonly remaining: number },
): TimeBudgetError | undefined {
  if (parent === undefined) return undefined
  if (parent.reason !== undefined) return parent.reason
  if (remaining >= needed) return undefined
  return budgetTooSmall({ operation, needed, remaining, of: parent })
}
