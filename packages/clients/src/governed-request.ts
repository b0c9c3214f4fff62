import { isAtTheEdge, type Outcome, type RunningOperation, type TimeBudgetError } from '@timebudget/core'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { blameUpstreamNow, isOutOfTime } from './failure.ts'
import { governBody, type GovernedResponse } from './governed-response.ts'
import { headersFor, outcomeOfAnswer, type ResolvedClientOptions } from './outgoing.ts'

/** Where a request goes, and by which rules. */
export interface Governing {
  readonly url: URL
  readonly resolved: Pick<ResolvedClientOptions<never>, 'propagatesTo' | 'trusts' | 'emit' | 'headerNames'>
}

/**
 * Puts a request that has just been made under its operation: it goes out with what is left, is destroyed by the
 * deadline, and ends the operation with its response.
 */
export function governRequest(request: ClientRequest, running: RunningOperation, governing: Governing): void {
  if (request.destroyed) {
    // the caller's signal had aborted before
    running.end('cancelled')
    return
  }
  if (!request.headersSent) stampBeforeSending(request, running, governing)
  const governed = new GovernedRequest(request, running, governing)
  request.emit = (event: string | symbol, ...args: unknown[]) => governed.emit(event, args)
  request.destroy = (error) => governed.destroy(error)
  running.onCutOff((reason) => governed.cut(reason))
}

/** Fails a request before it has begun, as Node would: later, so that there may be listeners. */
export function refuseRequest(request: ClientRequest, error: unknown): void {
  request.destroy(error as Error)
  process.nextTick(() => request.emit('error', error))
  setImmediate(() => request.emit('close'))
}

/** Headers leave with the first of these calls, which may come long after the request was made. */
function stampBeforeSending(
  request: ClientRequest,
  running: RunningOperation,
  { url, resolved }: Governing,
): void {
  const stamp = (): void => {
    if (request.headersSent) return
    for (const name of resolved.headerNames) request.removeHeader(name)
    for (const [name, value] of Object.entries(headersFor(url, running.deadline, resolved)))
      request.setHeader(name, value)
  }
  for (const method of ['write', 'end', 'flushHeaders'] as const) {
    const original = request[method] as (...args: unknown[]) => never
    request[method] = (...args: unknown[]) => {
      stamp()
      return original.apply(request, args)
    }
  }
}

/** What happens to the request, in place of what Node would let happen. */
class GovernedRequest {
  readonly #request: ClientRequest
  readonly #running: RunningOperation
  readonly #governing: Governing
  readonly #emit: ClientRequest['emit']
  readonly #destroy: ClientRequest['destroy']
  #response: GovernedResponse | undefined
  /** What happened so close to the deadline that its end is waited for. */
  #held: Array<{ readonly event: string | symbol; readonly args: readonly unknown[] }> | undefined
  #cut = false

  constructor(request: ClientRequest, running: RunningOperation, governing: Governing) {
    this.#request = request
    this.#running = running
    this.#governing = governing
    this.#emit = request.emit
    this.#destroy = request.destroy
  }

  emit(event: string | symbol, args: readonly unknown[]): boolean {
    if (this.#cut) return this.#emitAfterCut(event, args)
    if (this.#held !== undefined) return this.#hold(event, args)
    switch (event) {
      case 'response':
        return this.#answered(args)
      case 'error':
        return this.#failed(args)
      case 'connect':
      case 'upgrade':
        // from here on the connection is the caller's
        this.#running.end(this.#read(args[0] as IncomingMessage))
        break
      case 'close':
        // neither a response nor an error: an upgrade that nobody listens for
        if (this.#response === undefined) this.#running.end('upstream_error')
        break
      default:
    }
    return this.#pass(event, args)
  }

  /** Whoever destroys it but us has lost interest. */
  destroy(error: Error | undefined): ClientRequest {
    const reason = this.#request.destroyed ? undefined : this.#running.end('cancelled', error)
    if (reason !== undefined) {
      // what destroys it is the end of our deadline, seen through the signal that the call was given
      this.cut(reason)
      return this.#request
    }
    // else the response would only say that it was aborted
    if (error !== undefined) this.#response?.destroy(error)
    this.#destroy.call(this.#request, error)
    const held = this.#held ?? []
    this.#held = undefined
    for (const { event, args } of held) this.#pass(event, args)
    return this.#request
  }

  cut(reason: TimeBudgetError): void {
    if (this.#cut) return
    this.#cut = true
    if (this.#response !== undefined) {
      this.#response.cut(reason)
      for (const { event, args } of this.#held ?? [])
        this.#emitAfterCut(event, event === 'error' ? [reason] : args)
      return
    }
    this.#destroy.call(this.#request, reason)
    // Node would say so only once there is a socket, which in an agent's queue may take for ever
    process.nextTick(() => this.#pass('error', [reason]))
    setImmediate(() => this.#pass('close', []))
  }

  #answered(args: readonly unknown[]): boolean {
    const response = args[0] as IncomingMessage
    const outcome = this.#read(response)
    if (isOutOfTime(outcome)) {
      // the peer had all our time and gave up a moment before us: our own deadline is the answer
      if (isAtTheEdge(this.#running.deadline)) return this.#hold('response', args)
      if (this.#running.deadline.expired) return this.#tooLate(outcome)
    }
    if (hasNoBody(response, this.#request.method)) this.#running.end(outcome)
    this.#response = governBody(response, this.#running, outcome)
    return this.#pass('response', args)
  }

  /** Time is up, and the timer is about to find out. */
  #tooLate(outcome: Outcome): boolean {
    const reason = this.#running.end(outcome)
    if (reason !== undefined) this.cut(reason)
    return true
  }

  #failed(args: readonly unknown[]): boolean {
    if (this.#running.isOver()) return this.#pass('error', args)
    if (isAtTheEdge(this.#running.deadline)) return this.#hold('error', args)
    const error = args[0] as Error
    return this.#pass('error', [this.#response?.broken(error) ?? blameUpstreamNow(this.#running, error)])
  }

  #hold(event: string | symbol, args: readonly unknown[]): boolean {
    this.#held ??= []
    this.#held.push({ event, args })
    return true
  }

  /** The reason has been told, before the response; what Node makes of it is its echo. */
  #emitAfterCut(event: string | symbol, args: readonly unknown[]): boolean {
    const isEcho = event === 'error' || event === 'close' || event === 'response'
    if (this.#response === undefined) return isEcho || this.#pass(event, args)
    // once there is a response, many wait for its errors and some still for the request's
    if (event === 'error' && this.#request.listenerCount('error') === 0) return false
    return this.#pass(event, args)
  }

  #read(response: IncomingMessage): Outcome {
    const { statusCode = 0, headers } = response
    const deadlineOutcome = headers['x-deadline-outcome']
    const answer = {
      url: this.#governing.url,
      status: statusCode,
      serverTiming: headers['server-timing']?.toString(),
      deadlineOutcome: deadlineOutcome?.toString(),
    }
    return outcomeOfAnswer(answer, this.#running, this.#governing.resolved)
  }

  #pass(event: string | symbol, args: readonly unknown[]): boolean {
    return Reflect.apply(this.#emit, this.#request, [event, ...args])
  }
}

function hasNoBody({ statusCode }: IncomingMessage, method: string): boolean {
  return statusCode === 204 || statusCode === 304 || method === 'HEAD'
}
