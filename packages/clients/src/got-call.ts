import type { IncomingMessage } from 'node:http'
import {
  findTimeBudgetError,
  isAtTheEdge,
  isTimeBudgetError,
  type Outcome,
  type RunningOperation,
  type TimeBudgetError,
  waitOutTheEdge,
} from '@timebudget/core'
import type { RequestError, Response } from 'got'
import { blameUpstream, isOutOfTime } from './failure.ts'
import { outcomeOfAnswer, type ResolvedClientOptions } from './outgoing.ts'

/** A call of got's under an operation, however got hands out its result. */
export class GotCallUnderDeadline {
  readonly running: RunningOperation
  readonly #signal: AbortSignal | undefined
  readonly #resolved: Pick<ResolvedClientOptions<never>, 'trusts'>
  readonly #judged = new WeakMap<object, Promise<unknown>>()
  #finishing: Promise<TimeBudgetError | undefined> | undefined
  #response: Response | undefined

  constructor(
    running: RunningOperation,
    signal: AbortSignal | undefined,
    resolved: Pick<ResolvedClientOptions<never>, 'trusts'>,
  ) {
    this.running = running
    this.#signal = signal
    this.#resolved = resolved
  }

  answered(response: Response): void {
    this.#response = response
  }

  /** Calls back if the deadline ends the call; if the caller's own signal does, got itself sees to that. */
  onCutOff(callback: (reason: TimeBudgetError) => void): void {
    this.running.onCutOff((reason) => {
      if (!isCallersOwn(reason, this.#signal)) callback(reason)
    })
  }

  /** Ends the operation with the answer there was; returns what to throw in spite of it. */
  finish(): Promise<TimeBudgetError | undefined> {
    this.#finishing ??= this.#endWithAnswer(this.#response)
    return this.#finishing
  }

  /** Ends the operation with a failure; returns what to throw, the same for the same error. */
  judge(error: RequestError): Promise<unknown> {
    let judged = this.#judged.get(error)
    if (judged === undefined) {
      judged = this.#judge(error)
      this.#judged.set(error, judged)
    }
    return judged
  }

  /** Whether a peer that had all our time says so a moment before us: then our own deadline is the answer. */
  isOvertaken(response: Pick<IncomingMessage, 'headers'>): boolean {
    const { deadline } = this.running
    // in this order: the end may come between the two
    const isTime = isAtTheEdge(deadline) || deadline.expired
    return isTime && response.headers['x-deadline-outcome'] === 'deadline_exceeded'
  }

  /** Puts what has aborted a call among the causes of got's error. */
  explain(error: Error): void {
    explainAbort(error, this.running.deadline.reason, this.#signal)
  }

  async #judge(error: RequestError): Promise<unknown> {
    const { running } = this
    this.explain(error)
    if (running.isOver()) return error
    switch (error.name) {
      case 'HTTPError':
        return (await this.#endWithAnswer(error.response, error)) ?? error
      case 'CancelError':
      case 'AbortError':
        running.end('cancelled', error)
        return error
      case 'TimeoutError':
        return this.#endBesideEdge('operation_timeout', error)
      case 'UploadError':
      case 'CacheError':
        return this.#endBesideEdge('error', error)
    }
    const ours = findTimeBudgetError(error)
    if (ours !== undefined) return this.#endBesideEdge(ours.outcome, error)
    // what has no code of its own was thrown by a hook, or is about the options
    if (error.code === 'ERR_GOT_REQUEST_ERROR') return this.#endBesideEdge('error', error)
    return blameUpstream(running, error)
  }

  async #endBesideEdge(outcome: Outcome, error: unknown): Promise<unknown> {
    await waitOutTheEdge(this.running.deadline)
    return this.running.end(outcome, error) ?? error
  }

  async #endWithAnswer(
    response: Response | undefined,
    error?: unknown,
  ): Promise<TimeBudgetError | undefined> {
    const outcome = this.#outcomeOf(response)
    // the peer had all our time and gave up a moment before us: our own deadline is the answer
    if (isOutOfTime(outcome)) await waitOutTheEdge(this.running.deadline)
    return this.running.end(outcome, error)
  }

  #outcomeOf(response: Response | undefined): Outcome {
    // what an answer out of a cache says of time was true of another call
    if (response === undefined || response.isFromCache) return 'ok'
    const answer = {
      url: new URL(response.url),
      status: response.statusCode,
      serverTiming: response.headers['server-timing']?.toString(),
      deadlineOutcome: response.headers['x-deadline-outcome']?.toString(),
    }
    return outcomeOfAnswer(answer, this.running, this.#resolved)
  }
}

/** Whether the call ended because its caller aborted it. */
export function isCallersOwn(reason: unknown, signal: AbortSignal | undefined): signal is AbortSignal {
  if (signal?.aborted !== true || isTimeBudgetError(signal.reason)) return false
  return reason instanceof Error && reason.cause === signal.reason
}

/** got's own error for a signal that aborts does not say why, nor do a destroyed stream's before 14.6. */
export function explainAbort(
  error: Error & { code?: string },
  reason: unknown,
  signal: AbortSignal | undefined,
): void {
  if (!isTimeBudgetError(reason) || findTimeBudgetError(error) !== undefined) return
  if (error.name !== 'AbortError' && error.code !== reason.code) return
  error.cause = isCallersOwn(reason, signal) ? signal.reason : reason
}
