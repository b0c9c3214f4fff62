import { Deadline, type Duration } from '@timebudget/core'

/** The shorter of a client's configured timeout and of a call's own, in milliseconds. */
export function shorterTimeout(
  configured: Duration | undefined,
  own: number | undefined,
): Duration | undefined {
  if (configured === undefined || own === undefined) return configured ?? own
  return Math.min(Deadline.after(configured).budget, own)
}
