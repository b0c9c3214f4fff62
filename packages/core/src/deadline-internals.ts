import type { DeadlineWatcher } from './deadline-watcher.ts'
import type { Clock } from './clock.ts'
import type { Deadline } from './deadline.ts'
import type { DeadlineOrigin } from './deadline-origin.ts'
import type { TimerOwner } from './deadline-timers.ts'
import type { TimeBudgetError } from './errors.ts'
import type { LedgerEntry } from './ledger.ts'

/** What the rest of core may do with a deadline and users may not. */
export interface DeadlineInternals extends TimerOwner<Deadline> {
  isOurs(value: Deadline): boolean
  /**
   * Acts for the deadline from now on; with `hold` the process stays alive until it ends or is settled. Returns the
   * reason if it has ended before: then nobody will be told. For one that was just made the clock need not be read again,
   * which costs as much as all the rest.
   */
  watch(
    deadline: Deadline,
    watcher: DeadlineWatcher,
    options: { readonly hold: boolean; readonly isJustMade?: boolean },
  ): TimeBudgetError | undefined
  /** Decides on the reason of its end and returns it, the first cause; nobody is told before `cancel`. */
  claim(deadline: Deadline, reason: TimeBudgetError): TimeBudgetError
  fromWire(shape: {
    readonly remaining: number
    readonly epochMs: number | undefined
    readonly skewTolerance: number
    readonly clock: Clock | undefined
  }): Deadline
  /** Which attempt of the same work it stands for, from 1. */
  setAttempt(deadline: Deadline, attempt: number): void
  /** Ends the deadline when the signal aborts. */
  follow(deadline: Deadline, signal: AbortSignal): void
  /** What it knows of where it comes from, to be added to. */
  originOf(deadline: Deadline): DeadlineOrigin
  /** A child whose end is an operation's timeout, holding the operation that runs in it. */
  forOperation(
    parent: Deadline | undefined,
    limits: {
      readonly name: string
      readonly timeout: number
      readonly reserve: number
      readonly signal: AbortSignal | undefined
    },
  ): Deadline
  /** The innermost operation a deadline belongs to. */
  operationOf(deadline: Deadline): LedgerEntry | undefined
  setOperation(deadline: Deadline, operation: LedgerEntry): void
  clockOf(deadline: Deadline): Clock
  /** The moment at which it was made, monotonic milliseconds. */
  startOf(deadline: Deadline): number
  // `now` is a reading of its clock: that costs as much as all the rest, and one serves for several answers
  reasonAt(deadline: Deadline, now: number): TimeBudgetError | undefined
  remainingAt(deadline: Deadline, now: number): number
  /** Whoever works under it hands it on themselves: its operations use no async context. */
  spareContext(deadline: Deadline): void
  sparesContext(deadline: Deadline): boolean
}

export let internals: DeadlineInternals

/** For the class alone, whose private fields these functions reach. */
export function provideInternals(provided: DeadlineInternals): void {
  internals = provided
}
