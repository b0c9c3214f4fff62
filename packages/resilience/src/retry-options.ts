import {
  type Clock,
  type Deadline,
  type Duration,
  type Floor,
  type FloorSource,
  parseDuration,
  systemClock,
  refuseUnknownOptions,
} from '@timebudget/core'
import type { Latency } from './latency.ts'
import { optionalFunction, positiveInteger, textOf, withMethods } from './option-values.ts'
import { defaultRetryBudget, type RetryBudget } from './retry-budget.ts'

/** How long is waited before another attempt: a random time between 0 and a limit that grows. */
export interface BackoffOptions {
  /** The limit before the second attempt; `'100ms'`. */
  readonly initial?: Duration | undefined
  /** The limit grows no further; `'10s'`. */
  readonly max?: Duration | undefined
  /** What the limit grows by from attempt to attempt; 2. */
  readonly factor?: number | undefined
}

/** When a second attempt is begun beside a first one that still runs. */
export interface HedgeOptions {
  /** After that long; or, of a Latency, after its 95th percentile, once that is known. What attempts take is noted there. */
  readonly after: Duration | Latency
}

/** What is asked of `retryOn`: the work threw, or it gave an answer. */
export type AttemptResult<T> =
  | { readonly kind: 'error'; readonly error: unknown }
  | { readonly kind: 'answer'; readonly answer: T }

/** How work is repeated; every option may be left out. */
export interface RetryOptions<T = unknown> {
  /** Its name in the ledger, in errors and events; `'retry'`. */
  readonly operation?: string | undefined
  /** Attempts in all, hedges included; 3. */
  readonly attempts?: number | undefined
  /** Limit of a single attempt; none but the deadline. */
  readonly timeout?: Duration | undefined
  /** No attempt is begun with less than this left; 0. */
  readonly floor?: Floor | undefined
  /** Kept back from all attempts for what comes after them, such as a fallback; 0. */
  readonly reserve?: Duration | undefined
  readonly backoff?: BackoffOptions | undefined
  /** Decides what is tried again; `undefined` leaves it to the rules. What has ended by time or by its user never is. */
  readonly retryOn?: ((result: AttemptResult<T>) => boolean | undefined) | undefined
  /** `false`: what may have been carried out is never repeated; `true`. */
  readonly idempotent?: boolean | undefined
  /** Limits how many calls are repeated; one for the whole process by default, `null` for none. */
  readonly budget?: Pick<RetryBudget, 'deposit' | 'withdraw'> | null | undefined
  /** Whose share of the budget is used, a host's name for instance; the operation's name. */
  readonly destination?: string | undefined
  /** Retries also within an attempt that itself repeats another, here or at the caller's; `false`. */
  readonly nested?: boolean | undefined
  /** What it stands under, in place of the ambient deadline. */
  readonly deadline?: Deadline | undefined
  /** Ends it when it aborts. */
  readonly signal?: AbortSignal | undefined
  readonly hedge?: HedgeOptions | undefined
  /** Where time comes from; the process's own clock. */
  readonly clock?: Clock | undefined
  /** From 0 to 1, for the backoff; `Math.random`. */
  readonly random?: (() => number) | undefined
}

/** `RetryOptions` with every default filled in, durations in milliseconds. */
export interface RetryRules<T> {
  readonly operation: string
  readonly attempts: number
  readonly timeout: number | undefined
  readonly floor: number | FloorSource
  readonly reserve: number
  readonly backoff: { readonly initial: number; readonly max: number; readonly factor: number }
  readonly retryOn: ((result: AttemptResult<T>) => boolean | undefined) | undefined
  readonly idempotent: boolean
  readonly budget: Pick<RetryBudget, 'deposit' | 'withdraw'> | undefined
  readonly destination: string
  readonly nested: boolean
  readonly deadline: Deadline | undefined
  readonly signal: AbortSignal | undefined
  readonly hedgeAfter: number | Latency | undefined
  /** Where it is noted how long attempts take. */
  readonly latency: Latency | undefined
  readonly clock: Clock
  readonly random: () => number
}

const optionNames: Readonly<Record<keyof RetryOptions, true>> = {
  operation: true,
  attempts: true,
  timeout: true,
  floor: true,
  reserve: true,
  backoff: true,
  retryOn: true,
  idempotent: true,
  budget: true,
  destination: true,
  nested: true,
  deadline: true,
  signal: true,
  hedge: true,
  clock: true,
  random: true,
}

/**
 * Fills in the defaults and reads the durations.
 * @throws TypeError that names the option which is unknown or cannot be read.
 */
export function resolveRetryOptions<T>(options: RetryOptions<T>): RetryRules<T> {
  refuseUnknownOptions(options, Object.keys(optionNames))
  const { operation = 'retry', budget = defaultRetryBudget } = options
  const floor = resolveFloor(options.floor ?? 0)
  const hedgeAfter = options.hedge === undefined ? undefined : resolveHedge(options.hedge)
  return {
    operation: textOf(operation, 'operation'),
    attempts: positiveInteger(options.attempts ?? 3, 'attempts'),
    timeout: options.timeout === undefined ? undefined : parseDuration(options.timeout, 'timeout'),
    floor,
    reserve: parseDuration(options.reserve ?? 0, 'reserve'),
    backoff: resolveBackoff(options.backoff ?? {}),
    retryOn: optionalFunction(options.retryOn, 'retryOn'),
    idempotent: options.idempotent ?? true,
    budget: budget === null ? undefined : withMethods(budget, 'budget', ['deposit', 'withdraw']),
    destination: textOf(options.destination ?? operation, 'destination'),
    nested: options.nested ?? false,
    deadline: options.deadline,
    signal: options.signal,
    hedgeAfter,
    latency: latencyToTeach(floor, hedgeAfter),
    clock: options.clock ?? systemClock,
    random: optionalFunction(options.random, 'random') ?? Math.random,
  }
}

function resolveFloor(floor: Floor): number | FloorSource {
  return typeof floor === 'object' && floor !== null ? floor : parseDuration(floor, 'floor')
}

function resolveBackoff(options: BackoffOptions): RetryRules<unknown>['backoff'] {
  refuseUnknownOptions(options, ['initial', 'max', 'factor'], 'backoff')
  const { factor = 2 } = options
  if (!(factor >= 1 && factor < Infinity))
    throw new TypeError(`backoff.factor: expected a number of at least 1, got ${String(factor)}`)
  return {
    initial: parseDuration(options.initial ?? '100ms', 'backoff.initial'),
    max: parseDuration(options.max ?? '10s', 'backoff.max'),
    factor,
  }
}

function resolveHedge(hedge: HedgeOptions): number | Latency {
  refuseUnknownOptions(hedge, ['after'], 'hedge')
  const { after } = hedge
  if (typeof after !== 'object') return parseDuration(after, 'hedge.after')
  return withMethods(after, 'hedge.after', ['quantile', 'record'])
}

/** The latency that hedging goes by, unless the floor learns the very same. */
function latencyToTeach(
  floor: number | FloorSource,
  hedgeAfter: number | Latency | undefined,
): Latency | undefined {
  if (typeof hedgeAfter !== 'object') return undefined
  const isTaught = typeof floor === 'object' && 'latency' in floor && floor.latency === hedgeAfter
  return isTaught ? undefined : hedgeAfter
}
