import {
  credentials,
  InterceptingCall,
  type Interceptor,
  type InterceptorOptions,
  Metadata,
  type StatusObject,
} from '@grpc/grpc-js'
import {
  bind,
  isAtTheEdge,
  isTimeBudgetError,
  type Outcome,
  type RunningOperation,
  waitOutTheEdge,
} from '@timebudget/core'
import { textOf } from './grpc-metadata.ts'
import { type CausedStatus, statusOf } from './grpc-status.ts'
import { deadlineFromCall } from './grpc-server.ts'
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
export { type CallServerOptions, deadlineFromCall, deadlineServerInterceptor } from './grpc-server.ts'
export { type HandledCall, withDeadline } from './grpc-handler.ts'

/** A call as grpc-js is asked for it. */
export interface GrpcCall {
  /** `/package.Service/Method` */
  readonly path: string
}

type NextCall = ReturnType<Parameters<Interceptor>[1]>
type StatusListener = NonNullable<Parameters<NextCall['start']>[1]>

/**
 * Puts every call of a grpc-js client, of all four kinds, under the ambient deadline, or under the tighter one that its
 * own options give it.
 *
 *     new SearchClient(address, credentials.createInsecure(), { interceptors: [deadlineInterceptor()] })
 *
 * Calls fail as grpc-js lets them fail, with a ServiceError; what timebudget has ended has our error as its `cause`.
 * With less than the floor left no request is made.
 * @throws TypeError that names the option which cannot be read; so does a call whose own `deadline` is no moment.
 */
export function deadlineInterceptor(options: ClientOptions<GrpcCall> = {}): Interceptor {
  const resolved = resolveClientOptions(options, 'grpc')
  return function interceptWithDeadline(callOptions, nextCall) {
    const inherited = callOptions.parent === undefined ? undefined : deadlineFromCall(callOptions.parent)
    const deadline = deadlineOfCall(inherited?.signal)
    const timeout = timeoutOf(callOptions, resolved)
    if (!isBounded({ deadline, timeout }, resolved)) return new InterceptingCall(nextCall(callOptions))
    const call = { path: callOptions.method_definition.path }
    try {
      const running = startCall(resolved, call, { deadline, timeout })
      const attempts = new Attempts(running, resolved)
      const inner = nextCall(attempts.bound(callOptions, { isParentKnown: inherited !== undefined }))
      attempts.url = urlOf(inner.getPeer(), call)
      return new GovernedCall(inner, { running, resolved, url: attempts.url })
    } catch (error) {
      if (!isTimeBudgetError(error)) throw error
      return refusedCall(statusOf(error))
    }
  }
}

/** The shorter of the client's own timeout and of what the call's own deadline leaves. */
function timeoutOf(
  { deadline }: InterceptorOptions,
  { timeout }: ResolvedClientOptions<GrpcCall>,
): ClientOptions<GrpcCall>['timeout'] {
  if (deadline === undefined || deadline === Infinity) return timeout
  const moment = deadline instanceof Date ? deadline.getTime() : deadline
  // grpc-js would take the process down with it
  if (typeof moment !== 'number' || Number.isNaN(moment)) {
    throw new TypeError('deadline: expected Unix epoch milliseconds or a valid Date')
  }
  return shorterTimeout(timeout, Math.max(0, moment - Date.now()))
}

/** `dns:///search.internal:50051` and the like, as a URL that host rules can judge; a socket file is this host's. */
function urlOf(target: string, { path }: GrpcCall): URL {
  const [address = ''] = target.replace(/^[a-z\d+.-]+:(?:\/\/[^/]*\/)?(?=.)/i, '').split(',')
  const url = `http://${target.startsWith('unix') ? 'localhost' : address}${path}`
  return new URL(URL.canParse(url) ? url : `http://unknown.invalid${path}`)
}

/** What grpc-js is given for a call, so that it writes what is left whenever it sends the request. */
class Attempts {
  readonly #running: RunningOperation
  readonly #resolved: ResolvedClientOptions<GrpcCall>
  url: URL | undefined

  constructor(running: RunningOperation, resolved: ResolvedClientOptions<GrpcCall>) {
    this.#running = running
    this.#resolved = resolved
  }

  bound(
    { parent, ...options }: InterceptorOptions,
    { isParentKnown }: { readonly isParentKnown: boolean },
  ): InterceptorOptions {
    const left = this.#running.deadline.remaining()
    // credentials are asked for anew at each attempt, when a connection is there
    const stamps = credentials.createFromMetadataGenerator((_, callback) => this.#stamp(callback))
    return {
      ...options,
      // grpc-js would add a listener to the parent for each call
      ...(parent === undefined || isParentKnown ? {} : { parent }),
      ...(left === Infinity ? {} : { deadline: Math.ceil(Date.now() + Math.min(left, longestTimeout)) }),
      credentials: options.credentials?.compose(stamps) ?? stamps,
    }
  }

  #stamp(callback: (error: Error | null, metadata?: Metadata) => void): void {
    const { deadline } = this.#running
    const metadata = new Metadata()
    const headers = this.url === undefined ? {} : headersFor(this.url, deadline, this.#resolved)
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
    // grpc-js would send 0 milliseconds, and its servers would start on it
    if (deadline.remaining() < 1) return callback(new Error('no time is left'))
    callback(null, metadata)
  }
}

interface Governing {
  readonly running: RunningOperation
  readonly resolved: ResolvedClientOptions<GrpcCall>
  readonly url: URL
}

/** A call that ends once: with the peer's status, or with ours when the deadline, or whoever cancels it, comes first. */
class GovernedCall extends InterceptingCall {
  readonly #inner: NextCall
  readonly #governing: Governing
  #tellStatus: ((status: CausedStatus) => void) | undefined
  #isCancelled = false

  constructor(inner: NextCall, governing: Governing) {
    super(inner)
    this.#inner = inner
    this.#governing = governing
  }

  override start(metadata: Metadata, listener: StatusListener = {}): void {
    const { running, resolved } = this.#governing
    // grpc-js calls back in the context of whoever opened the connection
    this.#tellStatus = bind((status: CausedStatus) => listener.onReceiveStatus?.(status))
    running.onCutOff((reason) => {
      const status = statusOf(reason)
      this.#inner.cancelWithStatus(status.code, status.details)
      process.nextTick(() => this.#end(status))
    })
    if (running.deadline.expired) return
    const bare = metadata.clone()
    for (const name of resolved.headerNames) bare.remove(name)
    this.#inner.start(bare, {
      onReceiveMetadata: bind((received) => listener.onReceiveMetadata?.(received)),
      onReceiveMessage: bind((message) => {
        if (this.#tellStatus !== undefined) listener.onReceiveMessage?.(message)
      }),
      onReceiveStatus: (status) => this.#receiveStatus(status),
    })
  }

  override cancelWithStatus(code: StatusObject['code'], details: string): void {
    this.#isCancelled = true
    super.cancelWithStatus(code, details)
  }

  #receiveStatus(status: StatusObject): void {
    const { running, resolved, url } = this.#governing
    const answer = {
      url,
      code: status.code,
      serverTiming: textOf(status.metadata, 'server-timing'),
      deadlineOutcome: textOf(status.metadata, 'x-deadline-outcome'),
    }
    const outcome = this.#isCancelled ? 'cancelled' : outcomeOfPeer(answer, running, resolved)
    const isFailure = outcome !== 'ok' && outcome !== 'cancelled'
    if (!isFailure || !isAtTheEdge(running.deadline)) return this.#conclude(outcome, status)
    // outside the promise, so that what a callback throws is uncaught as it is without us
    void waitOutTheEdge(running.deadline).then(() => process.nextTick(() => this.#conclude(outcome, status)))
  }

  #conclude(outcome: Outcome, status: StatusObject): void {
    const reason = this.#governing.running.end(outcome)
    this.#end(reason === undefined ? status : statusOf(reason))
  }

  #end(status: CausedStatus): void {
    const tell = this.#tellStatus
    this.#tellStatus = undefined
    tell?.(status)
  }
}

/** A call that is over before it has begun. */
function refusedCall(status: CausedStatus): InterceptingCall {
  return new InterceptingCall(nothing, {
    start: (_, listener) => process.nextTick(() => listener.onReceiveStatus(status)),
  })
}

const nothing: NextCall = {
  start: ignore,
  sendMessage: ignore,
  sendMessageWithContext: ignore,
  startRead: ignore,
  halfClose: ignore,
  cancelWithStatus: ignore,
  getPeer: () => 'unknown',
  getAuthContext: () => null,
}

function ignore(): void {}
