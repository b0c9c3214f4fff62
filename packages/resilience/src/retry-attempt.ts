import {
  type CancelledError,
  type Deadline,
  type FloorSource,
  type OperationScope,
  type RunningOperation,
  startOperation,
  UpstreamError,
} from '@timebudget/core'
import { pushbackOf } from './pushback.ts'
import { discardAnswer } from './retry-answer.ts'
import { hasMembers, lookAt } from './retry-causes.ts'
import type { AttemptResult, RetryRules } from './retry-options.ts'
import { final, judgeAnswer, judgeError, statusOf, type Verdict } from './retry-verdict.ts'

/** What the work of an attempt gets. */
export interface RetryScope extends OperationScope {
  /** Which attempt it is, from 1. */
  readonly attempt: number
}

/** Work that may be done more than once. */
export type RetryWork<T> = (scope: RetryScope) => Promise<T> | T

/** An attempt that has failed. */
export interface FailedAttempt<T> {
  readonly kind: 'failed'
  readonly attempt: number
  /** What the work threw; of an answer that is a failure, what it would have thrown. */
  readonly error: unknown
  readonly answer: { readonly value: T } | undefined
  readonly verdict: Verdict
  /** Not before this moment of the clock may there be another; `Infinity`: never. */
  readonly notBefore: number
}

/** How an attempt ends. */
export type AttemptEnd<T> = { readonly kind: 'answered'; readonly value: T } | FailedAttempt<T>

/** What is known of an attempt before it begins. */
export interface AttemptPlan {
  readonly attempt: number
  /** What the whole of the attempts stands under. */
  readonly deadline: Deadline
  /** The least it is worth beginning with. */
  readonly floor: number | FloorSource
}

/** One attempt, which is an operation of its own. */
export class Attempt<T> {
  /** Never rejects. */
  readonly end: Promise<AttemptEnd<T>>
  readonly #rules: RetryRules<T>
  readonly #plan: AttemptPlan
  readonly #running: RunningOperation

  /** @throws BudgetTooSmallError if less than the floor is left; the deadline's reason if it has ended. */
  constructor(work: RetryWork<T>, rules: RetryRules<T>, plan: AttemptPlan) {
    this.#rules = rules
    this.#plan = plan
    this.#running = startOperation(rules.operation, {
      deadline: plan.deadline,
      attempt: plan.attempt,
      timeout: rules.timeout,
      reserve: rules.reserve,
      floor: plan.floor,
    })
    // what fails here is `retryOn`
    this.end = this.#run(work).catch((error: unknown) => this.#failed({ error, verdict: final }))
  }

  /** Ends it: another one was quicker. */
  cancel(reason: CancelledError): void {
    this.#running.deadline.cancel(reason)
  }

  async #run(work: RetryWork<T>): Promise<AttemptEnd<T>> {
    let got: { readonly value: T; readonly failure: FailedAttempt<T> | undefined } | undefined
    try {
      const value = await this.#running.run(async (scope) => {
        const value = await work(new AttemptScope(scope, this.#plan.attempt))
        // who waited for it has gone
        if (this.#running.isOver()) discardAnswer(value)
        got = { value, failure: undefined }
        const failure = this.#judgeAnswer(value)
        if (failure === undefined) return value
        got = { value, failure }
        throw failure.error
      })
      return { kind: 'answered', value }
    } catch (error) {
      if (got?.failure !== undefined && got.failure.error === error) return got.failure
      if (got !== undefined) discardAnswer(got.value)
      return this.#judgeError(error)
    } finally {
      this.#noteLatency()
    }
  }

  #judgeAnswer(value: T): FailedAttempt<T> | undefined {
    const judged = lookAt(() => judgeAnswer(value, this.#facts), undefined)
    const verdict = this.#overruled({ kind: 'answer', answer: value }, judged)
    if (verdict === undefined) return undefined
    const status = lookAt(() => (hasMembers(value) ? statusOf(value) : undefined), undefined)
    const wait = this.#pushbackOf(value)
    const said = status === undefined ? 'gave an answer that is to be tried again' : `answered ${status}`
    const error = new UpstreamError(`${this.#rules.operation} ${said}`, {
      operation: this.#rules.operation,
      budget: this.#running.deadline.budget,
      elapsed: this.#running.deadline.elapsed(),
      ...(wait > 0 && wait < Infinity ? { retryAfter: wait } : {}),
    })
    return this.#failed({ error, answer: { value }, verdict, wait })
  }

  #judgeError(error: unknown): FailedAttempt<T> {
    const judged = lookAt(() => judgeError(error, this.#facts), final)
    const ended = this.#running.deadline.reason
    // by the deadline, by its user or for another attempt: nobody is asked
    if (ended !== undefined && ended.outcome !== 'operation_timeout')
      return this.#failed({ error, verdict: final })
    const verdict = this.#overruled({ kind: 'error', error }, judged) ?? { ...judged, isRetryable: false }
    return this.#failed({ error, verdict, wait: this.#pushbackOf(error) })
  }

  #pushbackOf(failure: unknown): number {
    return lookAt(() => pushbackOf(failure, this.#rules.clock.epoch()), 0)
  }

  /** The rules' verdict, unless `retryOn` knows better; none if an answer is to be taken for a good one. */
  #overruled(result: AttemptResult<T>, verdict: Verdict | undefined): Verdict | undefined {
    const wanted = this.#rules.retryOn?.(result)
    if (wanted === undefined) return verdict
    return wanted ? { wasSent: verdict?.wasSent ?? true, isRetryable: true } : undefined
  }

  #failed(
    failed: Pick<FailedAttempt<T>, 'error' | 'verdict'> & {
      readonly answer?: { readonly value: T }
      /** Milliseconds. */
      readonly wait?: number
    },
  ): FailedAttempt<T> {
    const { error, verdict, answer, wait = 0 } = failed
    const notBefore = this.#rules.clock.now() + wait
    return { kind: 'failed', attempt: this.#plan.attempt, error, answer, verdict, notBefore }
  }

  get #facts(): { readonly hadAllTime: boolean } {
    const { granted, remaining } = this.#running.entry
    return { hadAllTime: granted >= remaining - 1 }
  }

  /** A call that was cut off took longer than that; one that failed says nothing of how long it takes. */
  #noteLatency(): void {
    const { entry, deadline } = this.#running
    const wasCut = deadline.reason !== undefined
    if (!wasCut && entry.outcome !== 'ok') return
    this.#rules.latency?.record(entry.spent ?? 0, { cut: wasCut })
  }
}

class AttemptScope implements RetryScope {
  readonly #scope: OperationScope
  readonly attempt: number

  constructor(scope: OperationScope, attempt: number) {
    this.#scope = scope
    this.attempt = attempt
  }

  get deadline(): Deadline {
    return this.#scope.deadline
  }

  /** Made on first use. */
  get signal(): AbortSignal {
    return this.#scope.signal
  }

  get timeout(): number {
    return this.#scope.timeout
  }
}
