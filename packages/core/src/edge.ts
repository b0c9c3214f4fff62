import type { Deadline } from './deadline.ts'

/**
 * A peer that keeps the same deadline gives up within a few milliseconds of us, on either side. What fails this close
 * to the end is the deadline's doing: we wait it out, so that the error does not depend on who was quicker.
 */
const edge = 25

/** Whether what fails now fails because the deadline is about to end: within 25 ms. */
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
