import {
  type BudgetTooSmallError,
  currentDeadline,
  Deadline,
  findTimeBudgetError,
  type FloorSource,
  hedgeStarted,
  retryDecided,
  type RetryStop,
  type TimeBudgetError,
} from '@timebudget/core'
import { endOfHedged } from './hedge.ts'
import { discardAnswer, drainAnswer } from './retry-answer.ts'
import { Attempt, type AttemptEnd, type FailedAttempt, type RetryWork } from './retry-attempt.ts'
import { decideRetry, type RetryDecision, type RetryState, roomAfter } from './retry-decision.ts'
import { ending, noTimeFor, withLastError } from './retry-end.ts'
import { resolveRetryOptions, type RetryOptions, type RetryRules } from './retry-options.ts'
import { waitUnder } from './wait.ts'

/**
 * Does the work again if it fails of what may pass, as long as the deadline leaves time for it.
 *
 *     const docs = await retry(({ signal }) => fetch(url, { signal }), { operation: 'retrieve', floor: '120ms', reserve: '200ms' })
 *
 * An answer with a status such as 503 counts as a failure, and is returned as it is once there is no further attempt.
 * `retryEndOf(error)` says why there was none.
 * @throws What the last attempt failed of, as it is; BudgetTooSmallError, with that as its cause, if there was no time for
 *   another; the reason of the deadline, or of whoever cancelled it, once that has ended; TypeError if an option is
 *   unknown or unreadable.
 */
export async function retry<T>(work: RetryWork<T>, options: RetryOptions<T> = {}): Promise<T> {
  const rules = resolveRetryOptions(options)
  const parent = rules.deadline ?? currentDeadline()
  // a parent brings its own clock
  const clock = parent === undefined ? rules.clock : undefined
  const { signal, operation: label } = rules
  const whole = Deadline.after(Infinity, { parent, clock, signal, label })
  try {
    return await new RetryCall({ work, rules, whole, parent }).run()
  } finally {
    whole.settle()
  }
}

interface Call<T> {
  readonly work: RetryWork<T>
  readonly rules: RetryRules<T>
  /** All attempts and the waits between them. */
  readonly whole: Deadline
  readonly parent: Deadline | undefined
}

/** One call of `retry`. */
class RetryCall<T> {
  readonly #call: Call<T>
  readonly #isWithinRetry: boolean
  /** Attempts begun, hedges included. */
  #made = 0
  #waits = 0
  #last: FailedAttempt<T> | undefined

  constructor(call: Call<T>) {
    this.#call = call
    this.#isWithinRetry = call.whole.attempt > 1
  }

  async run(): Promise<T> {
    const { rules, whole } = this.#call
    for (let { floor } = rules; ; this.#waits += 1) {
      const end = await this.#round(floor)
      if (end.kind === 'answered') return end.value
      if (whole.reason !== undefined) throw this.#endedBy(whole.reason, end)
      const decision = this.#decide(end)
      if (decision.kind === 'stop') return this.#giveUp(end, decision)
      this.#publish(end, { delay: decision.delay })
      this.#last = end
      await this.#pause(end, decision.delay)
      floor = decision.floor
    }
  }

  /** Rules of the user's that throw, such as a floor of its own, are told of and leave nothing open. */
  #decide(end: FailedAttempt<T>): RetryDecision {
    try {
      return decideRetry(end, this.#state(), this.#call.rules)
    } catch (error) {
      const stop = 'not_retryable'
      this.#publish(end, { stop })
      discardAnswer(end.answer?.value)
      throw this.#ending(error, stop)
    }
  }

  #state(): RetryState {
    return {
      made: this.#made,
      waits: this.#waits,
      isWithinRetry: this.#isWithinRetry,
      remaining: this.#call.whole.remaining(),
    }
  }

  /** An attempt, the first with another beside it if that is wanted. */
  async #round(floor: number | FloorSource): Promise<AttemptEnd<T>> {
    const first = this.#begin(floor)
    const after = this.#hedgeAfter
    if (after === undefined) return first.end
    const { clock } = this.#call.rules
    const startedAt = clock.now()
    const begin = (): Attempt<T> | undefined => this.#beginHedge(clock.now() - startedAt)
    return endOfHedged(first, { after, clock, begin })
  }

  #begin(floor: number | FloorSource): Attempt<T> {
    try {
      return this.#start(floor)
    } catch (error) {
      throw this.#refused(error, floor)
    }
  }

  #start(floor: number | FloorSource): Attempt<T> {
    const { work, rules, whole } = this.#call
    const attempt = new Attempt(work, rules, { attempt: this.#made + 1, deadline: whole, floor })
    this.#made += 1
    // what repeats somebody's call is no first attempt
    if (this.#made === 1 && !this.#isWithinRetry) rules.budget?.deposit(rules.destination)
    return attempt
  }

  /** Milliseconds after which the round that begins now may have a hedge; only the first may. */
  get #hedgeAfter(): number | undefined {
    const { idempotent, attempts, nested, hedgeAfter } = this.#call.rules
    if (hedgeAfter === undefined || !idempotent || this.#made !== 1 || attempts < 2) return undefined
    if (this.#isWithinRetry && !nested) return undefined
    return typeof hedgeAfter === 'number' ? hedgeAfter : hedgeAfter.quantile(usualShare)
  }

  /** A second attempt, if there is time and budget for one; the first goes on in any case. */
  #beginHedge(after: number): Attempt<T> | undefined {
    const { rules, whole, parent: deadline } = this.#call
    if (whole.expired) return undefined
    try {
      const room = roomAfter(0, whole.remaining(), rules)
      if (!room.isEnough || rules.budget?.withdraw(rules.destination) === false) return undefined
      const hedge = this.#start(room.floor)
      hedgeStarted.publish(() => ({ operation: rules.operation, deadline, after }))
      return hedge
    } catch {
      return undefined
    }
  }

  /** Waits, unless the end comes first. */
  async #pause(end: FailedAttempt<T>, delay: number): Promise<void> {
    const { rules, whole } = this.#call
    const stopDraining = drainAnswer(end.answer?.value)
    try {
      await waitUnder(delay, { deadline: whole, clock: rules.clock })
    } catch (error) {
      throw whole.reason === undefined ? error : this.#endedBy(whole.reason, end)
    } finally {
      stopDraining()
    }
  }

  #giveUp(end: FailedAttempt<T>, { stop, needed }: Extract<RetryDecision, { kind: 'stop' }>): T {
    this.#publish(end, { stop })
    if (end.answer !== undefined) return end.answer.value
    throw this.#ending(stop === 'no_time' ? this.#noTime(needed, end.error) : end.error, stop)
  }

  /** What to throw once the deadline has ended, whatever the attempt failed of. */
  #endedBy(reason: TimeBudgetError, end: FailedAttempt<T>): unknown {
    const stop = stopOf(reason)
    this.#publish(end, { stop })
    discardAnswer(end.answer?.value)
    const last = findTimeBudgetError(end.error) === reason ? this.#last : end
    return this.#ending(last === undefined ? reason : withLastError(reason, last.error), stop)
  }

  /** What to throw for an attempt that could not begin. */
  #refused(error: unknown, floor: number | FloorSource): unknown {
    const { rules, whole } = this.#call
    const last = this.#last
    if (last === undefined) return this.#ending(error, stopOf(whole.reason ?? findTimeBudgetError(error)))
    if (whole.reason !== undefined) return this.#endedBy(whole.reason, last)
    this.#publish(last, { stop: 'no_time' })
    const needed = rules.reserve + (typeof floor === 'number' ? floor : floor.current())
    return this.#ending(this.#noTime(needed, last.error), 'no_time')
  }

  #noTime(needed: number, cause: unknown): BudgetTooSmallError {
    const { rules, whole, parent = whole } = this.#call
    return noTimeFor(rules.operation, { needed, deadline: parent, cause })
  }

  #ending(error: unknown, stop: RetryStop): unknown {
    return ending(error, { stop, attempts: this.#made })
  }

  #publish(end: FailedAttempt<T>, { stop, delay = 0 }: { stop?: RetryStop; delay?: number }): void {
    const { rules, parent: deadline } = this.#call
    const { attempt, error } = end
    retryDecided.publish(() => ({ operation: rules.operation, deadline, attempt, stop, delay, error }))
  }
}

/** By what ended the call, or refused its start; a floor that throws is neither. */
function stopOf(reason: TimeBudgetError | undefined): RetryStop {
  if (reason === undefined) return 'not_retryable'
  return reason.status === 504 ? 'no_time' : 'cancelled'
}

/** What takes longer is worth a second call: one in twenty (Dean and Barroso, The Tail at Scale, 2013). */
const usualShare = 0.95
