import { type Clock, type Duration, parseDuration, systemClock } from '@timebudget/core'

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

/**
 * Milliseconds in a duration that must not be 0.
 * @throws TypeError that names `option`.
 */
export function durationAboveZero(duration: Duration, option: string): number {
  const milliseconds = parseDuration(duration, option)
  if (milliseconds > 0) return milliseconds
  throw new TypeError(`${option}: expected a duration above 0`)
}

/**
 * An integer of at least 1.
 * @throws TypeError that names `option`.
 */
export function positiveInteger(value: number, option: string): number {
  if (Number.isInteger(value) && value >= 1) return value
  throw new TypeError(`${option}: expected an integer of at least 1, got ${String(value)}`)
}

/**
 * @throws TypeError that names an option which does not exist.
 */
export function refuseUnknownOptions(options: object, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new TypeError(`${name}: no such option; there are ${known.join(', ')}`)
  }
}
