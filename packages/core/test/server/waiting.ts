import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

/** Settles when the signal aborts, with its reason. */
export async function aborted(signal: AbortSignal): Promise<unknown> {
  if (!signal.aborted) await once(signal, 'abort')
  return signal.reason
}

/** Work that takes no notice of any signal. */
export function stubborn(milliseconds: number): Promise<void> {
  return sleep(milliseconds)
}

/** Never settles. */
export function forever(): Promise<never> {
  return new Promise(() => {})
}

/** Keeps the event loop from everything else. */
export function block(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}
