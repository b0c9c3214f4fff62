import type { Dispatcher } from 'undici'
import type { CallParts, GuardedCall } from './undici-call.ts'
import { LegacyGuard } from './undici-legacy-guard.ts'
import { ModernGuard } from './undici-modern-guard.ts'

/**
 * Stands between undici and whoever waits for the answer: ends the wait at the deadline, also where undici would not
 * (in a pool's queue, in a retry's backoff), and lets nothing through afterwards. undici 8 knows one generation of
 * handlers, undici 7 both, undici 6 the older one; the global fetch is of the generation of the undici within Node.
 */
export type Guard = Dispatcher.DispatchHandler & GuardedCall

/** Of the newer generation wherever that is understood, as interceptors want it. */
export function guardForInterceptors(inner: Dispatcher.DispatchHandler, parts: CallParts): Guard {
  const isModern = typeof inner.onRequestStart === 'function'
  return (isModern ? new ModernGuard(inner, parts) : new LegacyGuard(inner, parts)).begin()
}

/**
 * Of the older generation wherever that is understood, as undici 7 speaks it within: for the newer one it would make a
 * record of an answer's headers, of that a list, and of that a record again (bench/outbound: 'interceptor that does nothing').
 */
export function guardForDispatcher(inner: Dispatcher.DispatchHandler, parts: CallParts): Guard {
  const isLegacy = typeof inner.onConnect === 'function'
  return (isLegacy ? new LegacyGuard(inner, parts) : new ModernGuard(inner, parts)).begin()
}
