import { setMaxListeners } from 'node:events'
import { ambient } from './ambient.ts'
import type { Deadline } from './deadline.ts'

// Registered, so that signals of ours know their deadline also across copies of this package.
const deadlineOfSignal: unique symbol = Symbol.for('timebudget.signal.v1')
type KnowingSignal = AbortSignal & { [deadlineOfSignal]?: Deadline }

/** A controller for a deadline, whose signal knows of it. */
export function controllerOf(deadline: Deadline): AbortController {
  const controller = new AbortController()
  const signal: KnowingSignal = controller.signal
  signal[deadlineOfSignal] = deadline
  // one request may well make fifty calls; no 0, on which Node 20's getMaxListeners throws, and undici's Request with it
  setMaxListeners(Infinity, signal)
  return controller
}

/** Aborts, so that the listeners run under the deadline too. */
export function abortUnder(deadline: Deadline, controller: AbortController, reason: unknown): void {
  if (ambient.used) ambient.storage.run(deadline, () => controller.abort(reason))
  else controller.abort(reason)
}

/** The deadline behind one of our signals. */
export function deadlineBehind(signal: KnowingSignal): Deadline | undefined {
  return signal[deadlineOfSignal]
}

/** Milliseconds left of the deadline behind a signal; `undefined` for signals that are not ours. */
export function remainingOf(signal: AbortSignal): number | undefined {
  return deadlineBehind(signal)?.remaining()
}
