import {
  CancelledError,
  type Clock,
  type ClockTimer,
  type Deadline,
  deadlineBehind,
  findTimeBudgetError,
  isAtTheEdge,
  isTimeBudgetError,
  type Outcome,
  outcomeOf,
  runWithDeadline,
  UpstreamError,
  waitOutTheEdge,
} from '@timebudget/core'
import { operationBehind } from '@timebudget/clients/fetch'
import type { Asked } from './asked.ts'
import { llmCallFinished } from './call-events.ts'
import type { CallTimings, LlmCall } from './call-record.ts'
import type { ConnectWatcher } from './connector.ts'
import { connectionError, limitError } from './limit-errors.ts'
import type { Limits } from './profiles.ts'
import { retryAfterOf } from './retry-after.ts'
import { type Limit, StreamGovernor } from './stream-governor.ts'
import { Tally } from './tally.ts'

/** What is known of a call before it is made. */
export interface CallOpening extends Pick<
  LlmCall,
  'operation' | 'task' | 'feature' | 'tenant' | 'attempt' | 'sdkRetry'
> {
  readonly asked: Asked
  readonly limits: Limits
  readonly clock: Clock
  /** Whether connections are told of, or made by a stranger's fetch. */
  readonly watchesConnections: boolean
  /** Milliseconds for which an abandoned answer is read on, to learn what it has cost; 0 where leaving stops the bill. */
  readonly drain: number
  readonly onCall: (call: LlmCall) => void
}

interface CallEnding {
  readonly outcome: Outcome
  readonly error?: unknown
  readonly complete: boolean
}

/** One call to a model: its timers, what came of its answer, and its record, which is published once. */
export class ModelCall implements ConnectWatcher {
  readonly asked: Asked
  readonly governor: StreamGovernor
  readonly tally: Tally = new Tally()
  readonly #opening: CallOpening
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #upstream = new AbortController()
  readonly #timings: { -readonly [K in keyof CallTimings]?: CallTimings[K] } = {}
  #caller: AbortSignal | undefined
  #deadline: Deadline | undefined
  #connection: 'unknown' | 'making' | 'made' | 'failed' = 'unknown'
  #connectingAt = 0
  #abandon: (() => void) | undefined
  #answer: (Pick<LlmCall, 'retryAfter' | 'shouldRetry'> & { readonly status: number }) | undefined
  #leaving: { readonly ending: CallEnding; readonly timer: ClockTimer } | undefined
  #ending: CallEnding | undefined
  #onFailure: ((error: unknown) => void) | undefined

  constructor(opening: CallOpening) {
    this.#opening = opening
    this.asked = opening.asked
    this.#clock = opening.clock
    this.#startedAt = opening.clock.now()
    this.governor = new StreamGovernor({
      limits: opening.limits,
      clock: opening.clock,
      awaitsFirstToken: opening.asked.streams,
      onLimit: (limit) => this.#limitPassed(limit),
    })
  }

  /** Aborts what goes on at the provider. */
  get upstreamSignal(): AbortSignal {
    return this.#upstream.signal
  }

  get operation(): string {
    return this.#opening.operation
  }

  get isOver(): boolean {
    return this.#ending !== undefined
  }

  /** Whether its caller has left while its answer is still read. */
  get isAbandoned(): boolean {
    return this.#leaving !== undefined
  }

  /** Whether its headers have come. */
  get isAnswered(): boolean {
    return this.#answer !== undefined
  }

  /** Calls back once if the call fails from now on. */
  onFailure(callback: (error: unknown) => void): void {
    this.#onFailure = callback
  }

  /** It goes out, and ends when this signal aborts. */
  sent(signal: AbortSignal): void {
    if (this.#caller !== undefined) return
    this.#caller = signal
    this.#deadline = deadlineBehind(signal)
    if (signal.aborted) this.#callerLeft()
    else signal.addEventListener('abort', this.#callerLeft)
  }

  connecting(abandon: () => void): void {
    if (this.isOver) return abandon()
    this.#connection = 'making'
    this.#connectingAt = this.#clock.now()
    this.#abandon = abandon
    this.governor.connecting()
  }

  connected({ made }: { readonly made: boolean }): void {
    this.#abandon = undefined
    this.governor.connected()
    if (this.isOver) return
    this.#connection = made ? 'made' : 'failed'
    if (made) this.#timings.connect = this.#clock.now() - this.#connectingAt
  }

  answered({ status, headers }: Pick<Response, 'status' | 'headers'>): void {
    this.#timings.headers = this.#elapsed()
    const said = headers.get('x-should-retry')
    this.#answer = {
      status,
      retryAfter: retryAfterOf(headers, this.#clock.epoch()),
      shouldRetry: said === 'true' ? true : said === 'false' ? false : undefined,
    }
  }

  /** So many bytes of its answer have come. */
  arrived(bytes: number): void {
    this.governor.transport(bytes)
    if (this.asked.streams && bytes > 0) this.#timings.firstChunk ??= this.#elapsed()
  }

  /** A piece of content has come. */
  content(): void {
    this.governor.content()
    if (this.asked.streams) this.#timings.firstToken ??= this.#elapsed()
  }

  /** The answer has come to its end, whatever it says. */
  completed(): void {
    const status = this.#answer?.status ?? 0
    if (status < 400 && this.tally.error === undefined) return this.#end({ outcome: 'ok', complete: true })
    this.#end({ outcome: 'upstream_error', error: this.#providerError(), complete: false })
  }

  /** What a body that ends with the provider's own error fails with. */
  providerFailed(): unknown {
    return this.#fail(this.#providerError())
  }

  /** The answer is not all there. */
  async interrupted(problem: string): Promise<unknown> {
    return this.#upstreamFailed(
      () => new UpstreamError(`${this.operation} was interrupted: ${problem}`, this.#details()),
    )
  }

  /** The connection failed; gives what to throw. */
  async broken(error: unknown): Promise<unknown> {
    return this.#upstreamFailed(() => connectionError(this.operation, error, this.#elapsed()))
  }

  /** It has failed before it was sent, or otherwise than all of us know. */
  refused(error: unknown, { byCaller }: { readonly byCaller: boolean }): void {
    const ours = findTimeBudgetError(error)
    const outcome = byCaller && ours === undefined ? 'cancelled' : outcomeOf(error)
    this.#end({ outcome, error: ours ?? error, complete: false })
  }

  /** Whoever waited for it has lost interest. */
  abandoned(reason: unknown): void {
    const why = isTimeBudgetError(reason) ? reason : (this.#deadline?.reason ?? this.#cancelled(reason))
    const ending: CallEnding = { outcome: why.outcome, error: why, complete: false }
    if (this.isOver || this.isAbandoned) return
    if (this.#opening.drain > 0 && this.#answer !== undefined) {
      const timer = this.#clock.wakeAfter(this.#opening.drain, () => this.#end(ending))
      this.#leaving = { ending, timer }
      this.#onFailure?.(why)
      return
    }
    this.#end(ending)
  }

  readonly #callerLeft = (): void => {
    this.abandoned(this.#caller?.reason)
  }

  #limitPassed(limit: Limit): void {
    // its own end is a matter of milliseconds, and counts
    if (isAtTheEdge(this.#deadline)) return
    const { limits } = this.#opening
    const { contentChunks } = this.tally
    this.#fail(limitError({ limit, limits, contentChunks, ...this.#details() }))
  }

  async #upstreamFailed(failure: () => UpstreamError): Promise<unknown> {
    if (!this.isOver) await waitOutTheEdge(this.#deadline)
    return this.#fail(failure())
  }

  /** Ends it with the failure, unless it has ended before; gives what it has ended with. */
  #fail(error: unknown): unknown {
    if (!this.isOver) this.#end({ outcome: outcomeOf(error), error, complete: false })
    return this.#ending?.error ?? error
  }

  #end(given: CallEnding): void {
    if (this.#ending !== undefined) return
    // at once, for whoever is told of the operation's end comes back here
    this.#ending = this.#leaving?.ending ?? given
    const ending = this.#endOperation(this.#ending)
    this.#ending = ending
    this.#leaving?.timer.cancel()
    this.governor.done()
    this.#caller?.removeEventListener('abort', this.#callerLeft)
    const record = this.#record(ending)
    if (!ending.complete && !this.#isWhole(given)) {
      this.#abandon?.()
      this.#upstream.abort(ending.error)
      this.#onFailure?.(ending.error)
    }
    this.#opening.onCall(record)
    this.#publish(record)
  }

  /** Under its own deadline, so that whoever listens knows which operation it was. */
  #publish(record: LlmCall): void {
    const publish = (): void => llmCallFinished.publish(() => record)
    if (this.#deadline === undefined) publish()
    else runWithDeadline(this.#deadline, publish)
  }

  /**
   * SDKs abort a call whose last event or error they have read: the operation hears of its end before. A deadline that has
   * passed meanwhile is its end all the same.
   */
  #endOperation(ending: CallEnding): CallEnding {
    const operation = this.#caller === undefined ? undefined : operationBehind(this.#caller)
    const reason = operation?.end(ending.outcome, ending.error)
    return reason === undefined ? ending : { outcome: reason.outcome, error: reason, complete: false }
  }

  /** Whether the provider has said all it had to say: then its connection may be used again. */
  #isWhole({ complete, outcome }: CallEnding): boolean {
    return (
      complete || (outcome === 'upstream_error' && this.#answer !== undefined && this.#answer.status >= 400)
    )
  }

  #record({ outcome, error, complete }: CallEnding): LlmCall {
    const { operation, task, feature, tenant, attempt, sdkRetry } = this.#opening
    const { provider, model, url, streams, promptLength } = this.asked
    const { contentChunks, textLength, error: providerError } = this.tally
    const isOpenOne = this.#wasSent() && this.#connection === 'unknown' && this.#opening.watchesConnections
    return {
      operation,
      provider,
      model,
      url: `${url.origin}${url.pathname}`,
      task,
      feature,
      tenant,
      streams,
      attempt: this.#deadline?.attempt ?? attempt,
      outcome,
      error,
      complete,
      status: this.#answer?.status,
      retryAfter: this.#answer?.retryAfter,
      shouldRetry: this.#answer?.shouldRetry,
      ...(providerError?.code === undefined ? {} : { providerCode: providerError.code }),
      usage: this.tally.usage(this.#wasWorkedOn() ? promptLength : undefined),
      contentChunks,
      textLength,
      timings: { ...(isOpenOne ? { connect: 0 } : {}), ...this.#timings, total: this.#elapsed() },
      sdkRetry,
    }
  }

  #wasSent(): boolean {
    return this.#caller !== undefined && this.#connection !== 'making' && this.#connection !== 'failed'
  }

  /** An error answer costs nothing; of no answer at all nobody knows. */
  #wasWorkedOn(): boolean {
    return this.#answer === undefined ? this.#wasSent() : this.#answer.status < 400
  }

  #providerError(): UpstreamError {
    const { error } = this.tally
    const { status = 0, retryAfter } = this.#answer ?? {}
    const how = status < 400 ? 'failed at the provider' : `was answered ${status}`
    const code = error?.code === undefined ? '' : ` (${error.code})`
    const details = { ...this.#details(), retryAfter }
    return new UpstreamError(
      `${this.operation} ${how}${code}: ${error?.message ?? 'no more is known'}`,
      details,
    )
  }

  #cancelled(reason: unknown): CancelledError {
    return new CancelledError(`${this.operation} was cancelled`, { ...this.#details(), cause: reason })
  }

  #details(): {
    readonly operation: string
    readonly elapsed: number
    readonly remaining: number | undefined
  } {
    const remaining = this.#deadline?.remaining()
    return {
      operation: this.operation,
      elapsed: this.#elapsed(),
      remaining: remaining === Infinity ? undefined : remaining,
    }
  }

  #elapsed(): number {
    return this.#clock.now() - this.#startedAt
  }
}
