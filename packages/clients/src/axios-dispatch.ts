import {
  type Deadline,
  deadlineBehind,
  type Outcome,
  type RunningOperation,
  type TimeBudgetError,
  waitOutTheEdge,
} from '@timebudget/core'
import type { AxiosError, AxiosInstance, AxiosResponse, InternalAxiosRequestConfig } from 'axios'
import { AsyncLocalStorage } from 'node:async_hooks'
import { Readable } from 'node:stream'
import { blameUpstream, failureOf, isOutOfTime, withCause } from './failure.ts'
import { type Fetch, followUnderDeadline, readRequest } from './followed-fetch.ts'
import { governBody } from './governed-response.ts'
import { headersFor, outcomeOfAnswer, type ResolvedClientOptions, startCall } from './outgoing.ts'
import { watchedStream } from './watched-body.ts'

/** The call an axios instance was asked for. */
export interface AxiosCall {
  readonly url: URL
  readonly method: string
}

type Config = InternalAxiosRequestConfig
type Resolved = ResolvedClientOptions<AxiosCall>

/** What a call stands under. */
export interface Bounds {
  readonly deadline: Deadline | undefined
  /** The caller's own. */
  readonly signal: AbortSignal | undefined
}

/** Does the part of an adapter for an instance: sends one attempt by the adapter that its config names. */
export type AxiosDispatch = (config: Config, bounds: Bounds) => Promise<AxiosResponse>

/** One attempt while it runs. */
interface Attempt {
  readonly config: Config
  readonly bounds: Bounds
  readonly running: RunningOperation
  readonly resolved: Resolved
  /** What axios is told of the end by. */
  readonly controller: AbortController
  /** Where the redirects have led to. */
  url: URL
}

/** Makes what sends an instance's attempts under their deadline. */
export function axiosDispatcher(instance: AxiosInstance, resolved: Resolved): AxiosDispatch {
  const send = bareSender(instance)
  return async function dispatchUnderDeadline(config, bounds) {
    const { deadline, signal } = bounds
    if (signal?.aborted === true && deadlineBehind(signal) === undefined) {
      return send({ ...config, signal }).catch((error: AxiosError) => {
        throw withReason(error, signal)
      })
    }
    const url = urlOf(instance, config)
    const call = { url, method: (config.method ?? 'get').toUpperCase() }
    const running = startCall(resolved, call, { deadline, signal })
    const controller = new AbortController()
    const attempt: Attempt = { config, bounds, running, resolved, controller, url }
    return new Promise((resolve, reject) => {
      running.onCutOff((reason) => {
        // for the caller's own abort axios has its own words
        if (!isCausedBy(reason, signal)) reject(reason)
        controller.abort(reason)
      })
      const outgoing = outgoingConfig(attempt)
      current
        .run(attempt, () => running.within(() => send(outgoing)))
        .then((response) => received(response, attempt))
        .catch((error: unknown) => failed(error, attempt))
        .then(resolve, reject)
    })
  }
}

/**
 * Axios resolves an adapter's name, and gives it to nobody. A bare instance of the very same axios does it on the way:
 * without defaults, transformations and interceptors, all of which the config has behind it.
 */
function bareSender(instance: AxiosInstance): (config: Config) => Promise<AxiosResponse> {
  const bare = instance.create()
  for (const name of Object.keys(bare.defaults)) Reflect.deleteProperty(bare.defaults, name)
  return function sendBare(config) {
    const { adapter } = config
    if (typeof adapter === 'function') return adapter(config)
    return bare.request({ ...config, transformRequest: [], transformResponse: [] })
  }
}

/** The config of this attempt alone: what a plugin sends again carries no headers of an attempt before. */
function outgoingConfig(attempt: Attempt): Config {
  const { config, running, resolved, controller, url } = attempt
  const headers = config.headers.concat()
  for (const name of resolved.headerNames) headers.delete(name)
  headers.set(headersFor(url, running.deadline, resolved))
  return {
    ...config,
    headers,
    signal: controller.signal,
    beforeRedirect: (...args) => {
      config.beforeRedirect?.(...args)
      redirect(args[0], attempt)
    },
    env: { ...config.env, fetch: governedFetch(config.env?.fetch) },
  }
}

/** For the http adapter; `options` are those of the next request. */
function redirect(options: Record<string, unknown>, attempt: Attempt): void {
  const { running, resolved } = attempt
  attempt.url = new URL(String(options['href']))
  const headers = options['headers'] as Record<string, unknown>
  for (const name of Object.keys(headers))
    if (resolved.headerNames.includes(name.toLowerCase())) delete headers[name]
  Object.assign(headers, headersFor(attempt.url, running.deadline, resolved))
}

/** The attempt whose adapter is running: axios keeps what it makes of a fetch, so that one must serve all. */
const current = new AsyncLocalStorage<Attempt>()
const globalFetch: Fetch = (input, init) => globalThis.fetch(input, init)
const governedFetches = new WeakMap<Fetch, Fetch>()

/** For the fetch adapter. */
function governedFetch(base: Fetch = globalFetch): Fetch {
  const made = governedFetches.get(base)
  if (made !== undefined) return made
  const governed: Fetch = async (input, init) => {
    const attempt = current.getStore()
    if (attempt === undefined) return base(input, init)
    const { running, resolved, controller } = attempt
    // axios gives its signal, which follows ours, to the Request alone, where it goes deaf
    const signal = init?.signal ?? (input instanceof Request ? input.signal : controller.signal)
    const call = readRequest(input, init)
    const { response, url } = await followUnderDeadline({
      base,
      input,
      init,
      call,
      running,
      signal,
      resolved,
    })
    attempt.url = url
    return response
  }
  governedFetches.set(base, governed)
  return governed
}

/** Ends the operation with the answer, or lets a body that is still to be read end it. */
async function received(response: AxiosResponse, attempt: Attempt): Promise<AxiosResponse> {
  const { running, resolved, controller, url } = attempt
  const headerOf = (name: string): string | undefined => response.headers[name]?.toString()
  const answer = {
    url,
    status: response.status,
    serverTiming: headerOf('server-timing'),
    deadlineOutcome: headerOf('x-deadline-outcome'),
  }
  const outcome = outcomeOfAnswer(answer, running, resolved)
  if (isOutOfTime(outcome)) {
    // the peer had all our time and gave up a moment before us: our own deadline is the answer
    await waitOutTheEdge(running.deadline)
    if (running.deadline.reason !== undefined) throw running.deadline.reason
  }
  const body: unknown = response.data
  if (body instanceof Readable) {
    const governed = governBody(body, running, outcome)
    running.onCutOff((reason) => {
      governed.cut(reason)
      controller.abort(reason)
    })
  } else if (body instanceof ReadableStream) {
    const source = cancelledBy(body, (reason) => controller.abort(reason))
    response.data = watchedStream(source, running, outcome, { toFailure: failureOfAdapter })
  } else {
    const reason = running.end(outcome)
    if (reason !== undefined) throw reason
  }
  handBack(response, attempt)
  return response
}

/** Ends the operation with what axios failed with; throws that, or the reason if our deadline is behind it. */
async function failed(error: unknown, attempt: Attempt): Promise<never> {
  const { running, bounds } = attempt
  if (!isAxiosError(error)) throw await failureOfAdapter(running, error)
  handBack(error, attempt)
  // an answer whose status the caller counts as a failure; with its body broken off it has no data
  if (error.response?.data !== undefined) {
    await received(error.response, attempt)
    throw error
  }
  const ownEnd = outcomeInAxios(error)
  if (ownEnd === undefined) throw await blameUpstream(running, error)
  await waitOutTheEdge(running.deadline)
  const reason = running.end(ownEnd, error)
  if (reason !== undefined && !isCausedBy(reason, bounds.signal)) throw reason
  throw withReason(error, bounds.signal)
}

/** Axios says no more than 'canceled'. */
function withReason(error: AxiosError, signal: AbortSignal | undefined): AxiosError {
  return signal?.aborted === true ? withCause(error, signal.reason) : error
}

/** Cancelled, a stream of axios waits for its next chunk before it lets go of the connection: `abort` does so at once. */
function cancelledBy(
  source: ReadableStream<Uint8Array>,
  abort: (reason: unknown) => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      async cancel(reason) {
        abort(reason)
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** An adapter of the user's may fail with anything. */
function failureOfAdapter(running: RunningOperation, error: unknown): Promise<unknown> {
  return error instanceof Error ? blameUpstream(running, error) : failureOf(running, error)
}

/** How a call ended that axios itself has ended. */
function outcomeInAxios(error: AxiosError): Outcome | undefined {
  if ('__CANCEL__' in error) return 'cancelled'
  return error.code === 'ECONNABORTED' || error.code === 'ETIMEDOUT' ? 'operation_timeout' : undefined
}

/** Gives plugins the config back that they know, and may send again. */
function handBack(carrier: { config?: Config | undefined }, { config, bounds }: Attempt): void {
  if (bounds.signal?.aborted === false) config.signal = bounds.signal
  carrier.config = config
}

function isCausedBy(reason: TimeBudgetError, signal: AbortSignal | undefined): boolean {
  return reason.code === 'CANCELLED' && signal?.aborted === true && reason.cause === signal.reason
}

function isAxiosError(error: unknown): error is AxiosError {
  return error instanceof Error && 'isAxiosError' in error
}

/** Where a call goes; what cannot be read is nobody's, and axios will say so. */
function urlOf(instance: AxiosInstance, config: Config): URL {
  const url = instance.getUri(config)
  return new URL(URL.canParse(url) ? url : 'http://unreadable.invalid')
}
