import type { RunningOperation } from '@timebudget/core'

const operations = new WeakMap<AbortSignal, RunningOperation>()

/** Lets the fetch below know, by the signal it gets, the operation it works for. */
export function tieOperation(signal: AbortSignal, running: RunningOperation): void {
  operations.set(signal, running)
}

/**
 * The operation behind the signal that a wrapped fetch gets: for one that knows how its call ended before the caller does,
 * and may so be the first to say it.
 */
export function operationBehind(signal: AbortSignal): RunningOperation | undefined {
  return operations.get(signal)
}
