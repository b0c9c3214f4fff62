import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DeadlineWatcher } from '../deadline-watcher.ts'
import { type Deadline, internals } from '../deadline.ts'
import { CancelledError, ClientClosedError, findTimeBudgetError, type TimeBudgetError } from '../errors.ts'
import { isOutcome, type Outcome } from '../outcome.ts'
import { type Answer, answerFor, malformedAnswer } from './answer.ts'
import { type Arrival, readArrival } from './arrival.ts'
import { budgetFor, optionsFor } from './chosen-budget.ts'
import { ClientWatch } from './client-gone.ts'
import { BegunBody } from './event-stream.ts'
import { isHttp2 } from './http2.ts'
import { letConnectionGo } from './let-connection-go.ts'
import type { ResolvedServerOptions } from './options.ts'
import { RequestBudget } from './request-budget.ts'
import {
  type ExchangeKeeper,
  guardExchange,
  keeperKey,
  type OriginalMethods,
  originalMethods,
  sealResponse,
} from './response-guard.ts'
import { ResponseHead } from './response-head.ts'
import type { Stoppable } from './shutdown.ts'
import { writeAnswer } from './write-answer.ts'

type KnownRequest = IncomingMessage & { [keeperKey]?: OpenRequest; readonly upgrade?: boolean }

/** Of an answer that was given in time so much may be on its way to the network: HTTP/2 and TLS write a little later. */
const mostUnsent = 16_384

/** How a framework differs from a bare response. */
export interface OpenOptions {
  /** Called before a response is answered past the framework: the place to hand over headers it keeps itself. */
  readonly beforeAnswer?: (() => void) | undefined
}

/** A request under its deadline: whoever ends it first, the answer, the client or the clock, ends it alone. */
export class OpenRequest extends ClientWatch implements DeadlineWatcher, ExchangeKeeper, Stoppable {
  readonly #options: ResolvedServerOptions
  readonly #arrival: Arrival
  readonly #budget: RequestBudget
  readonly #beforeAnswer: (() => void) | undefined
  readonly original: OriginalMethods
  #body = BegunBody.plain
  #onExceeded: ResolvedServerOptions['onExceeded']
  #reason: TimeBudgetError | undefined
  #told: Outcome | undefined
  #leftAtTheEdge = false
  #goneBy: string | undefined
  #tellEnded: (() => void) | undefined
  /** Whether status and headers have been let through, though they may not have left. */
  #isBegun = false
  #isAnswering = false
  #isSealed = false
  /** An answer that began late and is let through. */
  #isSentLate = false
  #isOver = false

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    options: ResolvedServerOptions,
    { beforeAnswer }: OpenOptions,
  ) {
    super(request, response)
    this.#options = options
    this.#beforeAnswer = beforeAnswer
    this.#onExceeded = options.onExceeded
    const { deadline, arrival } = readArrival(request, options)
    this.#arrival = arrival
    this.#budget = new RequestBudget(this, { entry: deadline, arrival, request, options })
    this.original = originalMethods(request, response)
  }

  /** The deadline that rules now: the request's, or a route's tighter one. */
  get deadline(): Deadline {
    return this.#budget.deadline
  }

  /** Whether it has been answered, so that no handler is to be entered. */
  get answered(): boolean {
    return this.#reason !== undefined || this.#isSealed
  }

  /** Calls back, once, if it ends otherwise than by its handler's answer; at once if it has. */
  onEnded(callback: () => void): void {
    if (this.answered) return callback()
    const before = this.#tellEnded
    this.#tellEnded =
      before === undefined
        ? callback
        : () => {
            before()
            callback()
          }
  }

  begin(): void {
    const { refusal, extra, malformedHeader } = this.#arrival
    // over HTTP/1 the response hears of its client's end as well as the request does
    guardExchange(this.request, this.response, this, {
      hearsRequest: this.#options.ambient || isHttp2(this.request),
    })
    this.#budget.announce()
    this.watchClient()
    if (this.#isOver) return
    this.#budget.join(this.#options.shutdown)
    if (malformedHeader !== undefined) this.#send(malformedAnswer(malformedHeader))
    else if (refusal !== undefined) this.#endBy(refusal, extra)
    else this.#endBy(this.#budget.watch())
  }

  /** Gives what follows less time, never more, and an answer of its own for the lack of it. */
  tighten(options: ResolvedServerOptions): void {
    if (this.answered || this.#isOver) return
    this.#onExceeded = options.onExceeded ?? this.#onExceeded
    this.#budget.join(options.shutdown)
    this.#endBy(options.shutdown?.refusal)
    if (!this.answered) this.#endBy(this.#budget.tighten(options, budgetFor(this.request, options)))
  }

  /** Runs what handles the request, under its deadline. */
  run<T>(work: () => T): T {
    return this.#budget.run(work)
  }

  /**
   * Answers an error of ours that a handler let through, as 504 and so on; what else the request was doing is ended.
   * `false` if the error is none of ours.
   */
  fail(error: unknown): boolean {
    const ours = findTimeBudgetError(error)
    if (ours === undefined) return false
    this.stop(ours)
    return true
  }

  /** Ends it for this reason, if it has not ended for another by then. */
  stop(reason: TimeBudgetError): void {
    if (this.#reason === undefined && !this.#isOver) this.#endBy(internals.claim(this.deadline, reason))
  }

  isOver(): boolean {
    if (this.#leftAtTheEdge) return false
    return this.#isSentLate || (this.response.writableEnded && this.response.writableLength <= mostUnsent)
  }

  deadlineEnded(reason: TimeBudgetError): void {
    this.#endBy(reason)
  }

  protected override responseFinished(): void {
    this.#finish()
  }

  protected override clientGone(how: string): void {
    const { details } = this.#budget
    // a handler or framework that breaks its own response off is no user who left
    const isOurs = how === 'server_closed'
    if (!isOurs && !this.response.writableEnded && this.#budget.isAtTheEdge) {
      this.#leftAtTheEdge = true
      return
    }
    this.stop(
      isOurs
        ? new CancelledError('the response was broken off by this server', details)
        : new ClientClosedError(`the client went away (${how})`, details),
    )
    if (this.#reason?.code === 'CLIENT_CLOSED') this.#goneBy = how
    this.#finish()
  }

  isTooLate(): boolean {
    if (this.#isAnswering) return false
    if (!this.#isSealed && !this.#isLateStart()) return false
    this.#endBy(this.deadline.reason)
    this.#budget.noteLate()
    return true
  }

  beforeHeaders(writeHeadArguments: unknown[] | undefined): void {
    if (this.#isBegun || this.#isAnswering) return
    this.#body = BegunBody.of(this.#begin(writeHeadArguments))
  }

  bodyWritten(chunk: unknown): void {
    this.#body.written(chunk)
  }

  beforeEnd(): void {
    // nothing is cut off of what has its end
    if (!this.#isBegun && !this.#isAnswering) this.#begin(undefined)
  }

  heard(emitter: EventEmitter, event: string | symbol): Deadline | undefined {
    const isLast = event === 'finish' || event === 'end' || event === 'close'
    if (isLast || event === 'aborted') this.heardEnd(emitter, event)
    // once the answer has left, whoever hears of that works for nobody who waits
    if (isLast && this.#isOver && this.#reason === undefined) return undefined
    return this.#budget.contextFor(emitter, event)
  }

  #begin(writeHeadArguments: unknown[] | undefined): ResponseHead {
    this.#isBegun = true
    this.#isSentLate = this.#options.late === 'send' && this.deadline.expired
    const head = new ResponseHead(this.response, writeHeadArguments)
    if (head.status >= 500) {
      // a framework that answers an error of ours in its own way sends the error's headers
      const told = head.get('x-deadline-outcome')
      if (isOutcome(told)) this.#told = told
    }
    const timing = this.#budget.serverTiming
    if (timing !== undefined) head.append('server-timing', timing)
    if (this.#budget.isStopping) letConnectionGo(this.response, head)
    return head
  }

  /**
   * An event loop that was blocked past the deadline lets the handler answer before the timer has run. Not in the midst of
   * an `end()` that was let through, which calls `writeHead()` or `write()`: that would end the response twice.
   */
  #isLateStart(): boolean {
    const isBegun = this.#isBegun || this.response.headersSent
    return this.#options.late === 'replace' && !isBegun && this.deadline.expired
  }

  /** The one way a request ends other than by its handler's answer: first the client is told, then the work. */
  #endBy(reason: TimeBudgetError | undefined, extra?: Readonly<Record<string, number>>): void {
    if (reason === undefined || this.#reason !== undefined || this.#isOver) return
    this.#reason = reason
    if (reason.code !== 'CLIENT_CLOSED' && !this.hasEnded) this.#tellClient(reason, extra)
    this.#budget.entry.cancel(reason)
    this.#tellEnded?.()
    if (this.#leftAtTheEdge) this.#finish()
  }

  #tellClient(reason: TimeBudgetError, extra: Readonly<Record<string, number>> | undefined): void {
    const response = this.response
    if (!response.headersSent && !response.writableEnded) {
      this.#send(answerFor(reason, { request: this.request, onExceeded: this.#onExceeded, extra }))
    } else if (!this.isOver()) {
      this.#body.cutOff(response, reason, this.original)
      this.#seal()
    }
  }

  #send(answer: Answer): void {
    this.#isAnswering = true
    try {
      this.#beforeAnswer?.()
      const timing = this.#budget.serverTiming
      const headers = timing === undefined ? answer.headers : { ...answer.headers, 'server-timing': timing }
      writeAnswer(this.request, this.response, { ...answer, headers }, this.original, {
        isLast: this.#budget.isStopping,
      })
    } catch (error) {
      process.emitWarning(`the answer could not be sent: ${String(error)}`, 'TimeBudgetWarning')
      this.response.destroy()
    }
    this.#isAnswering = false
    this.#seal()
  }

  #seal(): void {
    this.#isSealed = true
    sealResponse(this.request, this.response, () => this.#budget.noteLate())
  }

  #finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    const status = this.response.headersSent ? this.response.statusCode : undefined
    const failed = status !== undefined && status >= 500
    const outcome = this.#reason?.outcome ?? (failed ? (this.#told ?? 'error') : 'ok')
    this.#budget.settle({ outcome, status, goneBy: this.#goneBy })
  }
}

/**
 * Puts a request under its deadline; a second time on the same request only tightens it. `undefined` for a connection
 * that has been upgraded: it has no response that could be answered.
 */
export function openRequest(
  request: KnownRequest,
  response: ServerResponse,
  options: ResolvedServerOptions,
  host: OpenOptions = {},
): OpenRequest | undefined {
  const known = request[keeperKey]
  if (known !== undefined) {
    known.tighten(options)
    return known
  }
  if (request.upgrade === true) return undefined
  const open = new OpenRequest(request, response, optionsFor(request, options), host)
  open.begin()
  return open
}

/** The open request behind Node's request object. */
export function openRequestOf(request: KnownRequest): OpenRequest | undefined {
  return request[keeperKey]
}

/** The deadline of a request of Node's (Koa: `ctx.req`, Fastify: `request.raw`), without any async context. */
export function deadlineOf(request: KnownRequest): Deadline | undefined {
  return request[keeperKey]?.deadline
}
