import { ambient } from './ambient.ts'
import type { Deadline } from './deadline.ts'

/** The deadline that the running code stands under, if any. */
export function currentDeadline(): Deadline | undefined {
  return ambient.used ? ambient.storage.getStore() : undefined
}

/** Runs `work`, and all it starts, under the deadline. */
export function runWithDeadline<T>(deadline: Deadline, work: () => T): T {
  ambient.used = true
  // from Node 24 on each run copies a Map
  return ambient.storage.getStore() === deadline ? work() : ambient.storage.run(deadline, work)
}

/** Runs background work that must outlive its request: no deadline in here, everything else (traces, ...) stays. */
export function detach<T>(work: () => T): T {
  return ambient.used ? ambient.storage.run(undefined, work) : work()
}

/**
 * The same function, under the deadline of whoever calls `bind` now: for pools and loaders that run one caller's work
 * in another's context.
 */
export function bind<This, Arguments extends unknown[], Result>(
  work: (this: This, ...args: Arguments) => Result,
): (this: This, ...args: Arguments) => Result {
  const deadline = currentDeadline()
  return function underBoundDeadline(this: This, ...args: Arguments): Result {
    const run = (): Result => work.apply(this, args)
    return deadline === undefined ? detach(run) : runWithDeadline(deadline, run)
  }
}
