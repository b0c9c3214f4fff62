import {
  BudgetTooSmallError,
  type Deadline,
  isTimeBudgetError,
  type RetryStop,
  type TimeBudgetError,
} from '@timebudget/core'
import { hasMembers, lookAt } from './retry-causes.ts'

/** How a call that `retry` made has failed for good. */
export interface RetryEnd {
  /** Why there was no further attempt. */
  readonly stop: RetryStop
  /** Attempts begun, hedges included. */
  readonly attempts: number
}

// beside the errors, not on them: most are somebody else's
const ends = new WeakMap<object, RetryEnd>()

/** Why and after how many attempts `retry` gave up, of the error it threw; `undefined` for any other error. */
export function retryEndOf(error: unknown): RetryEnd | undefined {
  return hasMembers(error) ? ends.get(error) : undefined
}

/** Notes how a call has ended, and returns the error to throw for it. */
export function ending(error: unknown, end: RetryEnd): unknown {
  if (hasMembers(error)) ends.set(error, end)
  return error
}

/** Why there is no further attempt after `cause`: it needs more than what is left. Milliseconds. */
export function noTimeFor(
  operation: string,
  {
    needed,
    deadline,
    cause,
  }: { readonly needed: number; readonly deadline: Deadline; readonly cause: unknown },
): BudgetTooSmallError {
  const { budget } = deadline
  const remaining = deadline.remaining()
  const message = `another attempt at ${operation} needs ${Math.ceil(needed)} ms, ${Math.floor(remaining)} ms of ${Math.round(budget)} ms are left`
  return new BudgetTooSmallError(message, {
    operation,
    budget,
    elapsed: deadline.elapsed(),
    remaining,
    cause,
  })
}

// As deep as causes are looked at, and an end for chains that bite their tail.
const deepest = 10

/**
 * The reason of a deadline's end, with what the last attempt failed of at the end of its causes. A copy: the reason itself
 * belongs to everybody under that deadline.
 */
export function withLastError(reason: TimeBudgetError, last: unknown, depth = 0): TimeBudgetError {
  const { cause: _, ...members } = Object.getOwnPropertyDescriptors(reason)
  const copy: object = new Error(reason.message, { cause: lastBehind(reason.cause, last, depth + 1) })
  return Object.defineProperties(Object.setPrototypeOf(copy, Object.getPrototypeOf(reason)), members)
}

/** Why something was cancelled, told again by an error that has room for a cause. */
function lastBehind(why: unknown, last: unknown, depth: number): unknown {
  if ((why ?? undefined) === undefined || depth === deepest) return last
  if (isTimeBudgetError(why)) return withLastError(why, last, depth)
  if (!hasMembers(why)) return new Error(String(why), { cause: last })
  const { message, name, cause } = lookAt(
    () => ({ message: String(why['message']), name: String(why['name']), cause: why['cause'] }),
    { message: 'it cannot be told why', name: 'Error', cause: undefined },
  )
  return Object.assign(new Error(message, { cause: lastBehind(cause, last, depth + 1) }), { name })
}
