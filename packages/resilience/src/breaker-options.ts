import { type Clock, type Duration, parseDuration, refuseUnknownOptions, systemClock } from '@timebudget/core'
import { finiteDurationAboveZero, optionalFunction, positiveInteger } from './option-values.ts'

/** How a call ended, for `isFailure`: with what it threw, or with what it returned. */
export type CallEnd =
  | { readonly kind: 'error'; readonly error: unknown }
  | { readonly kind: 'result'; readonly result: unknown }

/** When a breaker opens, how it closes again, and what it takes for a failure. */
export interface BreakerOptions {
  /** Opens after so many failures without a success between them; 5, and none where only a `ratio` is given. */
  readonly failures?: number | undefined
  /** Opens when this share, above 0 to 1, of the calls in `window` failed; none. */
  readonly ratio?: number | undefined
  /** How far back `ratio` looks; `'30s'`. */
  readonly window?: Duration | undefined
  /** Fewer calls than this in `window` say nothing about the ratio; 20. */
  readonly minimum?: number | undefined
  /** How long nobody is let through once it has opened; `'10s'`. */
  readonly halfOpenAfter?: Duration | undefined
  /** How many calls may try at a time whether things are well again; 1. */
  readonly probes?: number | undefined
  /** After this a probe that still runs makes room for another one; as `halfOpenAfter`. */
  readonly probeTimeout?: Duration | undefined
  /**
   * A call that ran out of time is a failure only if it had been granted at least this; by default as long as nine of
   * ten lately successful calls took.
   */
  readonly patience?: Duration | undefined
  /** Which HTTP statuses are failures, thrown or returned; 500 and above. */
  readonly failureStatus?: ((status: number) => boolean) | undefined
  /** Decides in place of the rules where it returns a boolean; not asked about calls that were given up or never begun. */
  readonly isFailure?: ((end: CallEnd) => boolean | undefined) | undefined
  readonly clock?: Clock | undefined
}

/** `BreakerOptions` with every default filled in; milliseconds. */
export interface ResolvedBreakerOptions {
  readonly failures: number
  readonly ratio: number | undefined
  readonly window: number
  readonly minimum: number
  readonly halfOpenAfter: number
  readonly probes: number
  readonly probeTimeout: number
  readonly patience: number | undefined
  readonly failureStatus: (status: number) => boolean
  readonly isFailure: (end: CallEnd) => boolean | undefined
  readonly clock: Clock
}

const optionNames: Readonly<Record<keyof BreakerOptions, true>> = {
  failures: true,
  ratio: true,
  window: true,
  minimum: true,
  halfOpenAfter: true,
  probes: true,
  probeTimeout: true,
  patience: true,
  failureStatus: true,
  isFailure: true,
  clock: true,
}

/** @throws TypeError that names the option which does not exist or cannot be read. */
export function resolveBreakerOptions(options: BreakerOptions = {}): ResolvedBreakerOptions {
  refuseUnknownOptions(options, Object.keys(optionNames))
  const { ratio, patience } = options
  if (ratio !== undefined && !(ratio > 0 && ratio <= 1)) {
    throw new TypeError(`ratio: expected a share above 0 and up to 1, got ${String(ratio)}`)
  }
  // 5 failures and 10 s: cockatiel's own example; 30 s: Polly's window; 20 calls: Hystrix's least volume
  const halfOpenAfter = finiteDurationAboveZero(options.halfOpenAfter ?? '10s', 'halfOpenAfter')
  return Object.freeze({
    failures:
      ratio !== undefined && options.failures === undefined
        ? Infinity
        : positiveInteger(options.failures ?? 5, 'failures'),
    ratio,
    window: finiteDurationAboveZero(options.window ?? '30s', 'window'),
    minimum: positiveInteger(options.minimum ?? 20, 'minimum'),
    halfOpenAfter,
    probes: positiveInteger(options.probes ?? 1, 'probes'),
    probeTimeout: finiteDurationAboveZero(options.probeTimeout ?? halfOpenAfter, 'probeTimeout'),
    patience: patience === undefined ? undefined : parseDuration(patience, 'patience'),
    failureStatus: optionalFunction(options.failureStatus, 'failureStatus') ?? isServerError,
    isFailure: optionalFunction(options.isFailure, 'isFailure') ?? undecided,
    clock: options.clock ?? systemClock,
  })
}

function isServerError(status: number): boolean {
  return status >= 500
}

function undecided(): undefined {}
