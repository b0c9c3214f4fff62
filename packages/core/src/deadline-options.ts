import { type Clock, systemClock } from './clock.ts'
import type { Deadline } from './deadline.ts'
import { internals } from './deadline-internals.ts'
import type { Duration } from './duration.ts'

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

export const deadlineOptionNames: readonly string[] = [
  'parent',
  'signal',
  'label',
  'clock',
] as const satisfies (keyof DeadlineOptions)[]
export const childOptionNames: readonly string[] = [
  'timeout',
  'reserve',
  'label',
] as const satisfies (keyof ChildOptions)[]

/** The clock of a new deadline: as asked for, else its parent's, else the process's own. */
export function clockFor({ clock, parent }: DeadlineOptions): Clock {
  if (clock !== undefined) return clock
  return parent !== undefined && internals.isOurs(parent) ? internals.clockOf(parent) : systemClock
}
