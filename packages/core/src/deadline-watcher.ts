import type { TimeBudgetError } from './errors.ts'

/** The one party that must act when a deadline ends, before any signal aborts. */
export interface DeadlineWatcher {
  /** Whether the work is over although nobody said so yet: then the deadline settles instead of ending. */
  isOver(): boolean
  /** Must not throw. */
  deadlineEnded(reason: TimeBudgetError): void
}
