import { Deadline, type DeadlineOptions, type LedgerEntry, runWithDeadline } from '@timebudget/core'

/** Runs `work` as if in a request with that budget. */
export async function underDeadline<T>(
  budget: number,
  work: (deadline: Deadline) => Promise<T> | T,
  options?: DeadlineOptions,
): Promise<T> {
  const deadline = Deadline.after(budget, options)
  try {
    return await runWithDeadline(deadline, () => work(deadline))
  } finally {
    deadline.settle()
  }
}

/** What a promise fails with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

/** An error, its cause, the cause's cause, and so on. */
export function causesOf(error: unknown): unknown[] {
  const chain: unknown[] = []
  for (let link = error; link !== undefined && link !== null && chain.length < 10;) {
    chain.push(link)
    link = typeof link === 'object' && 'cause' in link ? link.cause : undefined
  }
  return chain
}

/** The codes of an error and its causes. */
export function codesOf(error: unknown): unknown[] {
  return causesOf(error).flatMap((link) =>
    typeof link === 'object' && link !== null && 'code' in link ? [link.code] : [],
  )
}

/** The only operation of a request. */
export function onlyEntry(deadline: Deadline): LedgerEntry {
  const [entry, ...others] = deadline.ledger.entries
  if (entry === undefined || others.length > 0)
    throw new Error(`expected one entry, got ${others.length + (entry === undefined ? 0 : 1)}`)
  return entry
}

/** Milliseconds. */
export const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Waits until something is so; the test's own time limit ends a vain wait. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await pause(2)
}
