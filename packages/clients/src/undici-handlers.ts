import type { Outcome, RunningOperation, TimeBudgetError } from '@timebudget/core'
import type { Dispatcher } from 'undici'
import { failureOf } from './failure.ts'

type Handler = Dispatcher.DispatchHandler
type Controller = Dispatcher.DispatchController

/** Told of a response's status and headers; says how the call ends for us. */
export type AnswerReader = (status: number, header: (name: string) => string | undefined) => Outcome

/**
 * Stands between undici and whoever waits for the answer: ends the wait at the deadline, also where undici would not
 * (in a pool's queue, in a retry's backoff), and lets nothing through afterwards. undici 7 and 8 know two generations
 * of handlers, undici 6 and the global fetch the older one.
 */
export function guardHandler(inner: Handler, running: RunningOperation, readAnswer: AnswerReader): Handler {
  const call = new GuardedCall(running, readAnswer)
  return typeof inner.onRequestStart === 'function'
    ? new ModernGuard(inner, call)
    : new LegacyGuard(inner, call)
}

/** What both generations share: the operation's end, once. */
class GuardedCall {
  readonly #running: RunningOperation
  readonly #readAnswer: AnswerReader
  #outcome: Outcome = 'ok'
  /** Why the wait is over although the call may still be going on. */
  cutOff: TimeBudgetError | undefined

  constructor(running: RunningOperation, readAnswer: AnswerReader) {
    this.#running = running
    this.#readAnswer = readAnswer
  }

  onCutOff(callback: (reason: TimeBudgetError) => void): void {
    this.#running.onCutOff((reason) => {
      this.cutOff = reason
      callback(reason)
    })
  }

  answered(status: number, header: (name: string) => string | undefined): void {
    if (status >= 200) this.#outcome = this.#readAnswer(status, header)
  }

  completed(): void {
    this.#running.end(this.#outcome)
  }

  failed(error: Error, pass: (failure: Error) => void): void {
    void failureOf(this.#running, error).then((failure) => {
      if (this.cutOff === undefined) pass(failure as Error)
    })
  }
}

class ModernGuard implements Handler {
  readonly #inner: Handler
  readonly #call: GuardedCall
  #controller: Controller | undefined

  constructor(inner: Handler, call: GuardedCall) {
    this.#inner = inner
    this.#call = call
    call.onCutOff((reason) => {
      this.#controller?.abort(reason)
      this.#inner.onResponseError?.(this.#controller ?? controllerOfNothing(reason), reason)
    })
  }

  onRequestStart(controller: Controller, context: unknown): void {
    this.#controller = controller
    if (this.#call.cutOff !== undefined) controller.abort(this.#call.cutOff)
    else this.#inner.onRequestStart?.(controller, context)
  }

  onRequestUpgrade(...args: Parameters<NonNullable<Handler['onRequestUpgrade']>>): void {
    if (this.#call.cutOff !== undefined) return
    this.#call.completed()
    this.#inner.onRequestUpgrade?.(...args)
  }

  onResponseStart(...args: Parameters<NonNullable<Handler['onResponseStart']>>): void {
    if (this.#call.cutOff !== undefined) return
    const [, status, headers] = args
    this.#call.answered(status, (name) => headers[name]?.toString())
    this.#inner.onResponseStart?.(...args)
  }

  onResponseData(...args: Parameters<NonNullable<Handler['onResponseData']>>): void {
    if (this.#call.cutOff === undefined) this.#inner.onResponseData?.(...args)
  }

  onResponseEnd(...args: Parameters<NonNullable<Handler['onResponseEnd']>>): void {
    if (this.#call.cutOff !== undefined) return
    this.#call.completed()
    this.#inner.onResponseEnd?.(...args)
  }

  onResponseError(controller: Controller, error: Error): void {
    if (this.#call.cutOff !== undefined) return
    this.#call.failed(error, (failure) => this.#inner.onResponseError?.(controller, failure))
  }
}

class LegacyGuard implements Handler {
  readonly #inner: Handler
  readonly #call: GuardedCall
  #abort: ((error?: Error) => void) | undefined

  constructor(inner: Handler, call: GuardedCall) {
    this.#inner = inner
    this.#call = call
    call.onCutOff((reason) => {
      this.#abort?.(reason)
      this.#inner.onError?.(reason)
    })
  }

  onConnect(abort: (error?: Error) => void, ...context: readonly unknown[]): void {
    this.#abort = abort
    if (this.#call.cutOff !== undefined) abort(this.#call.cutOff)
    // undici 6 hands over a context too
    else Reflect.apply(this.#inner.onConnect ?? ignore, this.#inner, [abort, ...context])
  }

  onUpgrade(...args: Parameters<NonNullable<Handler['onUpgrade']>>): void {
    if (this.#call.cutOff !== undefined) return
    this.#call.completed()
    this.#inner.onUpgrade?.(...args)
  }

  onResponseStarted(): void {
    if (this.#call.cutOff === undefined) this.#inner.onResponseStarted?.()
  }

  onHeaders(...args: Parameters<NonNullable<Handler['onHeaders']>>): boolean {
    if (this.#call.cutOff !== undefined) return false
    const [status, headers] = args
    this.#call.answered(status, (name) => rawHeader(headers, name))
    return this.#inner.onHeaders?.(...args) ?? true
  }

  onData(chunk: Buffer): boolean {
    if (this.#call.cutOff !== undefined) return false
    return this.#inner.onData?.(chunk) ?? true
  }

  onComplete(trailers: string[] | null): void {
    if (this.#call.cutOff !== undefined) return
    this.#call.completed()
    this.#inner.onComplete?.(trailers)
  }

  onError(error: Error): void {
    if (this.#call.cutOff !== undefined) return
    this.#call.failed(error, (failure) => this.#inner.onError?.(failure))
  }

  onBodySent(chunkSize: number, totalBytesSent: number): void {
    if (this.#call.cutOff === undefined) this.#inner.onBodySent?.(chunkSize, totalBytesSent)
  }
}

function rawHeader(headers: readonly (Buffer | string)[], name: string): string | undefined {
  for (let index = 0; index + 1 < headers.length; index += 2) {
    if (headers[index]?.toString('latin1').toLowerCase() === name)
      return headers[index + 1]?.toString('latin1')
  }
  return undefined
}

/** For a call that is cut off before undici has begun it. */
function controllerOfNothing(reason: TimeBudgetError): Controller {
  return { aborted: true, paused: false, reason, abort: ignore, pause: ignore, resume: ignore }
}

function ignore(): void {}
