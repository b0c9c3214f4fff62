import { Code, ConnectError, type Interceptor } from '@connectrpc/connect'
import {
  findTimeBudgetError,
  isTimeBudgetError,
  type Outcome,
  type RunningOperation,
  type TimeBudgetError,
  waitOutTheEdge,
} from '@timebudget/core'
import { codecs } from '@timebudget/core/wire'
import { connectErrorOf, isConnectTimeout } from './connect-status.ts'
import { CutOff } from './cut-off.ts'
import { runGoverned } from './governed.ts'
import {
  type ClientOptions,
  deadlineOfCall,
  headersFor,
  isBounded,
  type ResolvedClientOptions,
  resolveClientOptions,
  startCall,
} from './outgoing.ts'
import { shorterTimeout } from './own-timeout.ts'
import { longestTimeout, outcomeOfPeer } from './rpc-status.ts'

export type { ClientOptions }
export { type CallServerOptions, deadlineFromCall, deadlineServerInterceptor } from './connect-server.ts'

/** A call as Connect is asked for it. */
export interface ConnectCall {
  readonly url: URL
}

type Call = Parameters<Interceptor>[0]
type Request = Parameters<Call>[0]
type Response = Awaited<ReturnType<Call>>
type StreamResponse = Response & { readonly stream: true }

/**
 * Puts every call of a Connect transport, over the Connect, gRPC and gRPC-web protocols and of all four kinds, under the
 * ambient deadline, or under the tighter one that its own `timeoutMs` gives it.
 *
 *     createConnectTransport({ baseUrl, httpVersion: '2', interceptors: [deadlineInterceptor()] })
 *
 * Calls fail as Connect lets them fail, with a ConnectError; what timebudget has ended has our error as its `cause`. With
 * less than the floor left no request is made.
 * @throws TypeError that names the option which cannot be read.
 */
export function deadlineInterceptor(options: ClientOptions<ConnectCall> = {}): Interceptor {
  const resolved = resolveClientOptions(options, 'connect')
  return function interceptWithDeadline(next) {
    return async function callUnderDeadline(request) {
      const deadline = deadlineOfCall(request.signal)
      const own = ownTimeout(request.header)
      if (!isBounded({ deadline, timeout: own }, resolved)) return next(request)
      request.signal.throwIfAborted()
      const call = { url: new URL(request.url) }
      const timeout = shorterTimeout(resolved.timeout, own)
      const running = begin(() => startCall(resolved, call, { deadline, timeout }))
      return new GovernedCall({ running, resolved, request, url: call.url }).send(next)
    }
  }
}

const timeoutHeaders = ['connect-timeout-ms', 'grpc-timeout'] as const

/** The call's own `timeoutMs`, or the transport's, which Connect has written into a header by now. */
function ownTimeout(header: Headers): number | undefined {
  for (const name of timeoutHeaders) {
    const value = header.get(name)
    if (value === null) continue
    // Connect writes fractions, too many digits and NaN as they are
    const timeout = codecs[name].parse(value) ?? Number.parseFloat(value)
    if (Number.isNaN(timeout)) throw new TypeError(`timeoutMs: expected milliseconds, got ${value}`)
    return timeout
  }
  return undefined
}

/** What ends a call before it has begun is told as Connect would. */
function begin(start: () => RunningOperation): RunningOperation {
  try {
    return start()
  } catch (error) {
    throw isTimeBudgetError(error) ? connectErrorOf(error) : error
  }
}

interface Governing {
  readonly running: RunningOperation
  readonly resolved: ResolvedClientOptions<ConnectCall>
  readonly request: Request
  readonly url: URL
}

/** A call that ends once: with the peer's answer, or when the deadline, or whoever cancels it, comes first. */
class GovernedCall {
  readonly #governing: Governing
  readonly #cutOff = new CutOff()

  constructor(governing: Governing) {
    this.#governing = governing
    const { running, request } = governing
    running.onCutOff((reason) => this.#cutOff.cut(reason))
    const { signal } = request
    // Connect aborts it when the call is over, so that nothing is left of this
    signal.addEventListener('abort', () => {
      if (!isConnectTimeout(signal.reason)) running.deadline.cancel(signal.reason)
    })
  }

  async send(next: Call): Promise<Response> {
    const { running, request } = this.#governing
    try {
      const governed = { ...request, header: this.#header(), signal: running.signal }
      const response = await this.#cutOff.until(runGoverned(running, () => next(governed)))
      if (response.stream) return { ...response, message: this.#watched(response) }
      this.#succeed(response)
      return response
    } catch (error) {
      throw await this.#failure(error)
    }
  }

  /** What is left, in the header of the call's own protocol and in ours. */
  #header(): Headers {
    const { running, resolved, request, url } = this.#governing
    const left = running.deadline.remaining()
    const header = new Headers(request.header)
    const isGrpc = header.get('content-type')?.startsWith('application/grpc') === true
    const codec = codecs[isGrpc ? 'grpc-timeout' : 'connect-timeout-ms']
    for (const name of [...resolved.headerNames, ...timeoutHeaders]) header.delete(name)
    for (const [name, value] of Object.entries(headersFor(url, running.deadline, resolved)))
      header.set(name, value)
    // Connect sends it although its signal has aborted, and without a limit if there is none to write
    if (running.deadline.expired) throw new Error('no time is left')
    const timeout = left < Infinity ? codec.format(Math.min(left, longestTimeout)) : undefined
    if (timeout !== undefined) header.set(codec.header, timeout)
    return header
  }

  #watched(response: StreamResponse): AsyncIterable<never> {
    return {
      [Symbol.asyncIterator]: () => {
        const messages = (response.message as AsyncIterable<never>)[Symbol.asyncIterator]()
        return { next: () => this.#next(messages, response) }
      },
    }
  }

  async #next(messages: AsyncIterator<never>, response: StreamResponse): Promise<IteratorResult<never>> {
    try {
      const message = await this.#cutOff.until(messages.next())
      if (message.done === true) this.#succeed(response)
      return message
    } catch (error) {
      throw await this.#failure(error)
    }
  }

  #succeed(response: Response): void {
    const { running } = this.#governing
    const outcome = this.#outcomeOf(0, (name) => response.trailer.get(name) ?? response.header.get(name))
    const reason = running.end(outcome)
    if (reason !== undefined) throw reason
  }

  async #failure(error: unknown): Promise<unknown> {
    const { running, request } = this.#governing
    const { code, metadata } = isStatus(error) ? error : { code: Code.Unknown, metadata: undefined }
    const outcome = this.#outcomeOf(code, (name) => metadata?.get(name))
    if (outcome !== 'ok') await waitOutTheEdge(running.deadline)
    const reason = running.end(outcome, error)
    if (reason === undefined) return error
    blame(request.signal.reason, reason)
    return connectErrorOf(reason)
  }

  #outcomeOf(code: number, text: (name: string) => string | null | undefined): Outcome {
    const { running, resolved, url } = this.#governing
    const serverTiming = text('server-timing') ?? undefined
    const deadlineOutcome = text('x-deadline-outcome') ?? undefined
    return outcomeOfPeer({ url, code, serverTiming, deadlineOutcome }, running, resolved)
  }
}

/** Whether the peer has answered so. What has a cause failed below Connect, which calls a connection that is reset `aborted`. */
function isStatus(error: unknown): error is ConnectError {
  return error instanceof ConnectError && error.cause === undefined
}

/** Where its own timer has fired too, Connect fails the call with that one's error, whatever we throw. */
function blame(reason: unknown, cause: TimeBudgetError): void {
  if (isConnectTimeout(reason) && findTimeBudgetError(reason) === undefined) reason.cause = cause
}
