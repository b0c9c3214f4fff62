import { errorMonitor } from 'node:events'
import { type RunningOperation, runWithDeadline } from '@timebudget/core'
import type {
  BeforeRequestHook,
  CancelableRequest,
  ExtendOptions,
  Options,
  Request,
  RetryFunction,
} from 'got'
import { explainAbort, GotCallUnderDeadline } from './got-call.ts'
import { refusedPromise, settlingPromise } from './got-promise.ts'
import { settleStream } from './got-stream.ts'
import {
  type ClientOptions,
  deadlineOfCall,
  headersFor,
  isBounded,
  type ResolvedClientOptions,
  resolveClientOptions,
  startCall,
} from './outgoing.ts'

export type { ClientOptions }

/** The call a `got` was asked for. */
export interface GotCall {
  readonly url: URL
  readonly method: string
}

/**
 * Puts every call of a got instance, with its retries, their pauses and its redirects, under the ambient deadline or
 * that of the signal it is given.
 *
 *     const http = got.extend(deadlineHooks({ operation: 'search', floor: '50ms' }))
 *
 * A call then fails with BudgetTooSmallError, before any I/O, if less than the floor is left, with OperationTimeoutError
 * after its own timeout, and with the deadline's reason once that has ended; a stream's error has them as its `cause`.
 * What fails by itself fails with got's own error, and UpstreamError is among its causes.
 * @throws TypeError that names the option which cannot be read.
 */
export function deadlineHooks(options: ClientOptions<GotCall> = {}): Pick<ExtendOptions, 'handlers'> {
  const resolved = resolveClientOptions(options, 'got')
  const stamp = stampingHook(resolved)
  return { handlers: [gotUnderDeadline] }

  function gotUnderDeadline<T extends Request | CancelableRequest>(
    call: Options,
    next: (call: Options) => T,
  ): T {
    const url = urlOf(call)
    if (url === undefined) return next(call)
    const deadline = deadlineOfCall(call.signal)
    if (!isBounded({ deadline }, resolved)) return next(call)
    const { signal } = call
    const running = startOrRefuse(() =>
      startCall(resolved, { url, method: call.method }, { deadline, signal }),
    )
    if ('refusal' in running) return refuse(call, next, running.refusal)
    return govern(call, running.started, next)
  }

  function govern<T extends Request | CancelableRequest>(
    call: Options,
    running: RunningOperation,
    next: (call: Options) => T,
  ): T {
    const governed = new GotCallUnderDeadline(running, call.signal, resolved)
    call.context = { ...call.context, [runningKey]: running }
    call.hooks.beforeRequest = [...call.hooks.beforeRequest.filter((hook) => hook !== stamp), stamp]
    if (call.isStream) {
      call.hooks.beforeError = [
        ...call.hooks.beforeError,
        (error) => governed.judge(error) as Promise<typeof error>,
      ]
    }
    call.retry.calculateDelay = withinDeadline(call.retry.calculateDelay ?? computedDelay, running)
    try {
      const under = running.within(() => runWithDeadline(running.deadline, () => next(call)))
      return (isStream(under) ? settleStream(under, governed) : settlingPromise(under, governed)) as T
    } catch (error) {
      throw running.fail(error)
    }
  }
}

/** Nothing is sent, and got itself cleans up after the call that it has begun to make. */
function refuse<T extends Request | CancelableRequest>(
  call: Options,
  next: (call: Options) => T,
  refusal: unknown,
): T {
  call.hooks.beforeRequest = [
    () => {
      throw refusal
    },
  ]
  call.retry.calculateDelay = () => 0
  const begun = next(call)
  if (!isStream(begun)) return refusedPromise(begun, refusal, call.signal) as T
  begun.once(errorMonitor, (error: Error) => explainAbort(error, refusal, call.signal))
  return begun
}

function startOrRefuse(
  start: () => RunningOperation,
): { readonly started: RunningOperation } | { readonly refusal: unknown } {
  try {
    return { started: start() }
  } catch (refusal) {
    return { refusal }
  }
}

/** Travels with got's options through retries and redirects, for which got copies them. */
const runningKey: unique symbol = Symbol('timebudget.operation')
type GotContext = { readonly [runningKey]?: RunningOperation }

/** got calls it before each attempt and each redirect; must come last, when it is certain where the call goes. */
function stampingHook(resolved: ResolvedClientOptions<GotCall>): BeforeRequestHook {
  return function stampDeadline(call) {
    const running = (call.context as GotContext)[runningKey]
    const url = urlOf(call)
    if (running === undefined || url === undefined) return
    for (const name of resolved.headerNames) delete call.headers[name]
    // options that an earlier call has used up: of that deadline nothing may be left
    if (running.deadline.reason !== undefined) throw running.deadline.reason
    if (!running.isOver()) Object.assign(call.headers, headersFor(url, running.deadline, resolved))
  }
}

const computedDelay: RetryFunction = ({ computedValue }) => computedValue
const unbounded = new WeakMap<RetryFunction, RetryFunction>()

/** No retry for which no time would be left after the pause, nor one of a peer that has had all the time there is. */
function withinDeadline(given: RetryFunction, running: RunningOperation): RetryFunction {
  // options of an earlier call, as pagination uses them, have our own there
  const calculateDelay = unbounded.get(given) ?? given
  const bounded: RetryFunction = async (attempt) => {
    const pause = await calculateDelay(attempt)
    const isHopeless = attempt.error.response?.headers['x-deadline-outcome'] === 'deadline_exceeded'
    return isHopeless || running.deadline.remaining() <= pause + running.entry.floor ? 0 : pause
  }
  unbounded.set(bounded, calculateDelay)
  return bounded
}

function urlOf(call: Pick<Options, 'url'> | undefined): URL | undefined {
  // got hands over options that it could not read, and reports them itself
  const url = String(call?.url)
  return URL.canParse(url) ? new URL(url) : undefined
}

function isStream(call: Request | CancelableRequest): call is Request {
  return 'destroy' in call
}
