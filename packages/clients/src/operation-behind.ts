import type { RunningOperation } from '@timebudget/core'

// not a WeakMap: an entry for each call is work for every garbage collection
const operationOfSignal: unique symbol = Symbol('timebudget.operation')
type TiedSignal = AbortSignal & { [operationOfSignal]?: RunningOperation }

/** Lets the fetch below know, by the signal it gets, the operation it works for. */
export function tieOperation(signal: TiedSignal, running: RunningOperation): void {
  signal[operationOfSignal] = running
}

/**
 * The operation behind the signal that a wrapped fetch gets: for one that knows how its call ended before the caller does,
 * and may so be the first to say it.
 */
export function operationBehind(signal: TiedSignal): RunningOperation | undefined {
  return signal[operationOfSignal]
}
