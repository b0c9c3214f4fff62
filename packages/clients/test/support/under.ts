import { Deadline, runWithDeadline } from '@timebudget/core'

/** Runs the work under a deadline that many milliseconds from now. */
export function under<T>(budget: number, work: (deadline: Deadline) => Promise<T>): Promise<T> {
  const deadline = Deadline.after(budget)
  return runWithDeadline(deadline, () => work(deadline))
}

/** What a promise fails with. */
export async function failureOf(promise: Promise<unknown> | undefined): Promise<unknown> {
  return promise?.then(
    () => 'no failure',
    (error: unknown) => error,
  )
}
