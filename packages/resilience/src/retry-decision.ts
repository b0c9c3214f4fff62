import type { FloorSource, RetryStop } from '@timebudget/core'
import type { FailedAttempt } from './retry-attempt.ts'
import type { RetryRules } from './retry-options.ts'

/** What becomes of a call whose attempt has failed. */
export type RetryDecision =
  | { readonly kind: 'again'; readonly delay: number; readonly floor: number | FloorSource }
  | { readonly kind: 'stop'; readonly stop: RetryStop; readonly needed: number }

/** Where a call stands after a failed attempt. */
export interface RetryState {
  /** Attempts begun, hedges included. */
  readonly made: number
  /** Failures before this one that were waited for. */
  readonly waits: number
  /** Whether the call is part of an attempt that repeats another one. */
  readonly isWithinRetry: boolean
  /** Milliseconds. */
  readonly remaining: number
}

type Rules = Pick<
  RetryRules<never>,
  | 'attempts'
  | 'backoff'
  | 'budget'
  | 'clock'
  | 'destination'
  | 'floor'
  | 'idempotent'
  | 'nested'
  | 'random'
  | 'reserve'
>

/** Decides whether a failed attempt is followed by another; what the retry budget has for it is taken from it. */
export function decideRetry(
  failed: Pick<FailedAttempt<unknown>, 'verdict' | 'notBefore'>,
  state: RetryState,
  rules: Rules,
): RetryDecision {
  const { verdict, notBefore } = failed
  if (!verdict.isRetryable || notBefore === Infinity) return stop('not_retryable')
  if (verdict.wasSent && !rules.idempotent) return stop('already_sent')
  if (state.isWithinRetry && !rules.nested) return stop('already_a_retry')
  if (state.made >= rules.attempts) return stop('no_attempts')
  const demanded = Math.max(0, notBefore - rules.clock.now())
  const delay = Math.max(demanded, backoffBefore(state.waits, rules))
  const room = roomAfter(delay, state.remaining, rules)
  if (!room.isEnough) {
    const isDemandTooLong = demanded > 0 && !isEnough(state.remaining - demanded - rules.reserve, room.needed)
    return stop(isDemandTooLong ? 'retry_after_too_long' : 'no_time', delay + rules.reserve + room.needed)
  }
  if (rules.budget?.withdraw(rules.destination) === false) return stop('no_budget')
  return { kind: 'again', delay, floor: room.floor }
}

function stop(reason: RetryStop, needed = 0): RetryDecision {
  return { kind: 'stop', stop: reason, needed }
}

/** Full jitter: callers that failed together do not come back together. */
function backoffBefore(waits: number, { backoff, random }: Pick<Rules, 'backoff' | 'random'>): number {
  // neither 0 times infinity nor infinity times 0 is a number, and a thousand attempts come to infinity
  const limit = backoff.initial === 0 ? 0 : backoff.initial * backoff.factor ** waits
  return Math.min(backoff.max, limit, Number.MAX_VALUE) * random()
}

/** Whether an attempt is worth beginning after a wait. */
export interface Room {
  readonly isEnough: boolean
  /** Milliseconds. */
  readonly needed: number
  /** For the attempt's operation: it says there what it said here. */
  readonly floor: number | FloorSource
}

/** What is left for an attempt after a wait, against what it needs; a learned floor is asked here, once. Milliseconds. */
export function roomAfter(
  delay: number,
  remaining: number,
  { floor, reserve }: Pick<RetryRules<never>, 'floor' | 'reserve'>,
): Room {
  const left = remaining - delay - reserve
  if (typeof floor === 'number') return { isEnough: isEnough(left, floor), needed: floor, floor }
  if (!isEnough(left, 0)) return { isEnough: false, needed: 0, floor }
  const learned = floor.current(left)
  const needed = learned >= 0 ? learned : 0
  const asked: FloorSource = { current: () => needed, record: (end) => floor.record?.(end) }
  return { isEnough: isEnough(left, needed), needed, floor: asked }
}

function isEnough(left: number, needed: number): boolean {
  return left > 0 && left >= needed
}
