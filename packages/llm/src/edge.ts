import type { Deadline } from '@timebudget/core'

/**
 * A peer that keeps our deadline gives up within milliseconds of us. What fails this close to it is the deadline's doing:
 * as in the other clients, it is waited for.
 */
const edge = 25

/** Whether what fails now fails because the deadline is about to end. */
export function isAtTheEdge(deadline: Deadline | undefined): boolean {
  return deadline !== undefined && !deadline.expired && deadline.remaining() <= edge
}

/** Settles when the deadline has ended if that is about to happen, else at once. */
export async function waitOutTheEdge(deadline: Deadline | undefined): Promise<void> {
  if (deadline === undefined || !isAtTheEdge(deadline)) return
  const { signal } = deadline
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
