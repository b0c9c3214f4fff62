import { type Clock, type Duration, systemClock } from '@timebudget/core'
import { durationAboveZero, positiveInteger } from './option-values.ts'

/** How a latency is learned; every option may be left out. */
export interface LatencyOptions {
  /** How far back it looks; `'60s'`. */
  readonly window?: Duration | undefined
  /** With fewer calls in the window nothing is said; 20: of fewer there is no 95th percentile. */
  readonly minSamples?: number | undefined
  /** Where time comes from; the process's own clock. */
  readonly clock?: Clock | undefined
}

/** `LatencyOptions` with every default filled in, the window in milliseconds. */
export interface ResolvedLatencyOptions {
  readonly window: number
  readonly minSamples: number
  readonly clock: Clock
}

/**
 * Fills in the defaults and reads the window.
 * @throws TypeError that names the option which cannot be read.
 */
export function resolveLatencyOptions(options: LatencyOptions = {}): ResolvedLatencyOptions {
  return {
    window: durationAboveZero(options.window ?? '60s', 'window'),
    minSamples: positiveInteger(options.minSamples ?? 20, 'minSamples'),
    clock: options.clock ?? systemClock,
  }
}
