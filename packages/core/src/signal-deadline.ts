import type { Deadline } from './deadline.ts'

// Registered, so that signals of ours know their deadline also across copies of this package.
const deadlineOfSignal: unique symbol = Symbol.for('timebudget.signal.v1')
type KnowingSignal = AbortSignal & { [deadlineOfSignal]?: Deadline }

/** Lets a signal know its deadline. */
export function tie(signal: KnowingSignal, deadline: Deadline): void {
  signal[deadlineOfSignal] = deadline
}

/** The deadline behind one of our signals. */
export function deadlineBehind(signal: KnowingSignal): Deadline | undefined {
  return signal[deadlineOfSignal]
}

/** Milliseconds left of the deadline behind a signal; `undefined` for signals that are not ours. */
export function remainingOf(signal: AbortSignal): number | undefined {
  return deadlineBehind(signal)?.remaining()
}
