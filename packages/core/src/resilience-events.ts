import type { Deadline } from './deadline.ts'
import { defineEvent, type EventChannel } from './event-channel.ts'

/** Why a failed call is not tried again. */
export type RetryStop =
  | 'no_time'
  | 'no_attempts'
  | 'no_budget'
  | 'not_retryable'
  | 'already_sent'
  | 'already_a_retry'
  | 'retry_after_too_long'
  | 'cancelled'

/** An attempt has failed, and it has been decided whether there is another one. Milliseconds. */
export interface RetryDecided {
  readonly operation: string
  readonly deadline: Deadline | undefined
  /** The attempt that failed; the first one is 1. */
  readonly attempt: number
  /** Absent if there is another attempt. */
  readonly stop: RetryStop | undefined
  /** The wait before the next attempt; 0 if there is none. */
  readonly delay: number
  readonly error: unknown
}

/** A second attempt was begun while the first one still ran. */
export interface HedgeStarted {
  readonly operation: string
  readonly deadline: Deadline | undefined
  /** Milliseconds after the first one. */
  readonly after: number
}

/** Less than the learned floor was left at a start. Milliseconds. */
export interface FloorJudged {
  readonly operation: string
  readonly remaining: number
  readonly floor: number
  /** The chance, 0 to 1, of finishing within what is left. */
  readonly chance: number
  /**
   * `refused`; or begun all the same: because the floor only observes, because nothing presses, to explore, or because
   * it refuses enough already.
   */
  readonly decision: 'refused' | 'observed' | 'no_pressure' | 'explored' | 'capped'
}

/** A learned floor that its owner should look at, at most once a minute. */
export interface FloorQuestionable {
  readonly operation: string
  /** `refuses_most`: it refuses more than half; `budget_too_short`: the budgets it sees can hardly be met at all. */
  readonly kind: 'refuses_most' | 'budget_too_short'
  /** The share, 0 to 1, that it refuses; or that finishes within such a budget. */
  readonly share: number
  /** For people: `12 % of calls finish within this budget of 800 ms`. */
  readonly message: string
}

/** A circuit breaker has changed its state. */
export interface BreakerMoved {
  readonly breaker: string
  readonly from: 'closed' | 'open' | 'half_open'
  readonly to: 'closed' | 'open' | 'half_open'
}

/** A queue in front of a scarce resource has decided on a caller, or a caller has left it. Milliseconds. */
export interface QueueJudged {
  readonly queue: string
  readonly deadline: Deadline | undefined
  readonly decision: 'admitted' | 'shed' | 'left'
  readonly waited: number
  /** How long it was expected to wait, on arrival. */
  readonly predicted: number
  readonly waiting: number
  readonly running: number
}

/** How late the event loop runs; while it is blocked nobody's deadline is kept. Milliseconds. */
export interface LoopLagged {
  readonly lag: number
}

/** Published after each failed attempt of `retry`. */
export const retryDecided: EventChannel<RetryDecided> = defineEvent('timebudget:retry.decided')
/** Published when `retry` begins a second attempt beside the first. */
export const hedgeStarted: EventChannel<HedgeStarted> = defineEvent('timebudget:hedge.started')
/** Published when a learned floor judges a start for which little is left. */
export const floorJudged: EventChannel<FloorJudged> = defineEvent('timebudget:floor.judged')
/** Published when a learned floor refuses so much that somebody should look at it. */
export const floorQuestionable: EventChannel<FloorQuestionable> = defineEvent('timebudget:floor.questionable')
/** Published when a circuit breaker changes its state. */
export const breakerMoved: EventChannel<BreakerMoved> = defineEvent('timebudget:breaker.moved')
/** Published when a queue admits or refuses a caller, or a caller leaves it. */
export const queueJudged: EventChannel<QueueJudged> = defineEvent('timebudget:queue.judged')
/** Published when the event loop was found to be late. */
export const loopLagged: EventChannel<LoopLagged> = defineEvent('timebudget:loop.lagged')
