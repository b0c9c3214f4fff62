import { OverloadedError } from '@timebudget/core'
import { retryAfter } from './queue-judge.ts'
import type { Waiter } from './queue-waiter.ts'

/** Why somebody is refused: what it would have taken, what was left, and when it is worth coming again. */
export function overloaded(
  waiter: Waiter,
  {
    queue,
    waiting,
    slots,
    wait,
    drained,
  }: {
    readonly queue: string
    /** How many stand in line. */
    readonly waiting: number
    readonly slots: number
    /** Milliseconds that it would have waited, or has. */
    readonly wait: number
    /** Milliseconds until nobody who waits now will still be waiting. */
    readonly drained: number
  },
): OverloadedError {
  const { request, expectation, budget, left } = waiter
  const why =
    expectation === undefined
      ? `${waiting} wait already`
      : `its turn comes after about ${Math.round(wait)} ms and takes about ${Math.round(expectation.mean)} ms`
  return new OverloadedError(
    `${queue}: no time for ${request.operation}: ${why}, ${Math.floor(left)} ms are left; ${waiting} wait for ${slots} slots`,
    {
      operation: request.operation,
      budget: request.deadline.budget,
      elapsed: request.deadline.elapsed(),
      remaining: left,
      retryAfter: expectation === undefined ? drained : retryAfter({ expectation, budget, wait, drained }),
    },
  )
}
