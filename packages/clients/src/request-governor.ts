import { isAtTheEdge, type Outcome, type RunningOperation, type TimeBudgetError } from '@timebudget/core'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { blameUpstreamNow, isOutOfTime } from './failure.ts'
import { governBody, type GovernedResponse } from './governed-response.ts'
import {
  type Destination,
  headersNow,
  outcomeOfAnswer,
  type PeerAnswer,
  type ResolvedClientOptions,
  tellOfSending,
} from './outgoing.ts'
import { rawHeader } from './raw-headers.ts'

/** Where a request goes, and by which rules. */
export interface Governing {
  readonly to: Destination
  readonly resolved: Pick<ResolvedClientOptions<never>, 'propagatesTo' | 'trusts' | 'emit' | 'headerNames'>
}

type OwnMethods = Pick<ClientRequest, 'emit' | 'destroy' | 'write' | 'end' | 'flushHeaders'>

/** What happens to the request, in place of what Node would let happen. */
export class GovernedRequest {
  readonly #request: ClientRequest
  readonly #running: RunningOperation
  readonly #governing: Governing
  /** The request's methods as they were. */
  readonly own: OwnMethods
  #response: GovernedResponse | undefined
  /** What happened so close to the deadline that its end is waited for. */
  #held: Array<{ readonly event: string | symbol; readonly args: readonly unknown[] }> | undefined
  #cut = false

  constructor(request: ClientRequest, running: RunningOperation, governing: Governing) {
    this.#request = request
    this.#running = running
    this.#governing = governing
    this.own = ownMethods(request)
  }

  /** Stamps the headers if they are about to leave. */
  sending(method: 'write' | 'end' | 'flushHeaders', args: readonly unknown[]): never {
    if (!this.#request.headersSent) this.#stamp()
    return Reflect.apply(this.own[method], this.#request, args) as never
  }

  /** Whether an event goes out as it is; all but few do. */
  passes(event: string | symbol, detail: unknown): boolean {
    if (this.#cut || this.#held !== undefined) return false
    switch (event) {
      case 'response':
        return this.#answered(detail as IncomingMessage)
      case 'error':
        return false
      case 'connect':
      case 'upgrade':
        // from here on the connection is the caller's
        this.#running.end(this.#read(detail as IncomingMessage))
        return true
      case 'close':
        // neither a response nor an error: an upgrade that nobody listens for
        if (this.#response === undefined) this.#running.end('upstream_error')
        return true
      default:
        return true
    }
  }

  /** What happens to an event that does not pass. */
  emitOtherwise(event: string | symbol, ...args: readonly unknown[]): boolean {
    if (this.#cut) return this.#emitAfterCut(event, args)
    return event === 'error' && this.#held === undefined ? this.#failed(args) : this.#hold(event, args)
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
    this.own.destroy.call(this.#request, error)
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
    this.own.destroy.call(this.#request, reason)
    // Node would say so only once there is a socket, which in an agent's queue may take for ever
    process.nextTick(() => this.#pass('error', [reason]))
    setImmediate(() => this.#pass('close', []))
  }

  /** Whether the caller is to hear of it. */
  #answered(response: IncomingMessage): boolean {
    const outcome = this.#read(response)
    if (isOutOfTime(outcome)) {
      // the peer had all our time and gave up a moment before us: our own deadline is the answer
      if (isAtTheEdge(this.#running.deadline)) return false
      const { reason } = this.#running.deadline
      if (reason !== undefined) {
        // time is up, and the timer is about to find out
        this.#running.end(outcome)
        this.cut(reason)
        return false
      }
    }
    if (hasNoBody(response, this.#request.method)) this.#running.end(outcome)
    this.#response = governBody(response, this.#running, outcome)
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

  #stamp(): void {
    const { to, resolved } = this.#governing
    const { deadline } = this.#running
    // its timer is late: what was written first says when it was to end, and nothing would say so from now on
    if (deadline.expired) return
    tellOfSending(to, deadline, resolved)
    const stamps = headersNow(to, deadline, resolved)
    for (const name of resolved.headerNames) {
      const value = stamps[name]
      if (value === undefined) this.#request.removeHeader(name)
      else this.#request.setHeader(name, value)
    }
  }

  #read(response: IncomingMessage): Outcome {
    const { to, resolved } = this.#governing
    return outcomeOfAnswer(new NodeAnswer(to, response), this.#running, resolved)
  }

  #pass(event: string | symbol, args: readonly unknown[]): boolean {
    return Reflect.apply(this.own.emit, this.#request, [event, ...args])
  }
}

let lastSeen: OwnMethods | undefined

/** The same object for the same methods, which are those of Node's class for nearly all requests. */
function ownMethods({ emit, destroy, write, end, flushHeaders }: ClientRequest): OwnMethods {
  if (
    lastSeen?.emit === emit &&
    lastSeen.destroy === destroy &&
    lastSeen.write === write &&
    lastSeen.end === end &&
    lastSeen.flushHeaders === flushHeaders
  ) {
    return lastSeen
  }
  lastSeen = { emit, destroy, write, end, flushHeaders }
  return lastSeen
}

function hasNoBody({ statusCode }: IncomingMessage, method: string): boolean {
  return statusCode === 204 || statusCode === 304 || method === 'HEAD'
}

class NodeAnswer implements PeerAnswer {
  readonly #to: Destination
  readonly #response: IncomingMessage

  constructor(to: Destination, response: IncomingMessage) {
    this.#to = to
    this.#response = response
  }

  get status(): number {
    return this.#response.statusCode ?? 0
  }

  get serverTiming(): string | undefined {
    return headerOf(this.#response, 'server-timing')
  }

  get deadlineOutcome(): string | undefined {
    return headerOf(this.#response, 'x-deadline-outcome')
  }

  get url(): URL {
    return this.#to.url
  }
}

/** As Node's `headers` have it, which Node makes of all headers when the first is asked for: a caller may never ask. */
function headerOf(response: Partial<IncomingMessage>, name: string): string | undefined {
  const { rawHeaders } = response
  // what stands in for a response, in tests for instance, may have been given nothing but `headers`
  if (rawHeaders === undefined || rawHeaders.length === 0) return response.headers?.[name]?.toString()
  return rawHeader(rawHeaders, name)
}
