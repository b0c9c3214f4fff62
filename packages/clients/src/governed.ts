import { type Deadline, type RunningOperation, runWithDeadline } from '@timebudget/core'

// So that a call which one of our clients governs is not governed once more by an instrumented dispatcher below it.
const governed = new WeakSet<Deadline>()
let isInstrumented = false

/** From now on calls must be told apart. */
export function noteInstrumentation(): void {
  isInstrumented = true
}

/** Runs a client's own call. */
export function runGoverned<T>(running: RunningOperation, call: () => T): T {
  if (!isInstrumented) return running.within(call)
  const { deadline } = running
  governed.add(deadline)
  return running.within(() => runWithDeadline(deadline, call))
}

/** Whether the running code, under this deadline, is a call that one of our clients makes. */
export function isGoverned(deadline: Deadline | undefined): boolean {
  return deadline !== undefined && governed.has(deadline)
}
