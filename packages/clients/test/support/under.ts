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

/** Waits for a condition that nothing announces. */
export async function eventually(holds: () => Promise<boolean> | boolean, limit = 5_000): Promise<void> {
  const until = Date.now() + limit
  while (!(await holds())) {
    if (Date.now() > until) throw new Error(`not within ${limit} ms: ${holds.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
