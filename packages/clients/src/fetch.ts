import { currentDeadline, type Deadline, deadlineBehind, type RunningOperation, startOperation } from '@timebudget/core'
import { failureOf, waitOutTheEdge } from './failure.ts'
import { type ClientOptions, headersFor, outcomeOfAnswer, type ResolvedClientOptions, resolveClientOptions } from './outgoing.ts'
import { fetchFailed, mostRedirects, redirected, type RedirectableRequest, redirectTarget } from './redirects.ts'
import { runGoverned } from './governed.ts'
import { watchBody } from './watched-body.ts'

export type { ClientOptions }

/** The call a `fetch` was asked for. */
export interface FetchCall {
  readonly url: URL
  readonly method: string
}

/** What of a `fetch` is needed: the global one, undici's, or an SDK's. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/**
 * The global fetch, under the ambient deadline: it carries what is left to the next service, ends when that is used up
 * with the connection closed, and stands in the ledger. Without a deadline it is the global fetch.
 */
export const fetch: Fetch = wrapFetch((input, init) => globalThis.fetch(input, init))

/**
 * A fetch under the ambient deadline, or that of the signal it is given.
 *
 *     new OpenAI({ fetch: wrapFetch(globalThis.fetch, { operation: 'generate', floor: '300ms' }) })
 *
 * The returned fetch throws BudgetTooSmallError before any I/O if less than the floor is left, OperationTimeoutError
 * after its own timeout, the deadline's reason once that has ended, the caller's own reason if its signal aborts, and
 * UpstreamError, with fetch's error as the cause, if the call fails otherwise.
 * @throws TypeError that names the option which cannot be read.
 */
export function wrapFetch(base: Fetch = fetch, options: ClientOptions<FetchCall> = {}): Fetch {
  const resolved = resolveClientOptions(options, 'fetch')
  return async function fetchUnderDeadline(input, init) {
    const callerSignal = init?.signal ?? (input instanceof Request ? input.signal : undefined)
    const deadline = earlier(currentDeadline(), callerSignal === undefined ? undefined : deadlineBehind(callerSignal))
    if (deadline === undefined && resolved.timeout === undefined) return base(input, init)
    callerSignal?.throwIfAborted()
    if (input instanceof Request) requestBehind.set(input.signal, input)
    const call = readCall(input, init)
    const running = startOperation(resolved.nameOf(call), {
      timeout: resolved.timeout,
      floor: resolved.floor,
      deadline,
      signal: callerSignal,
    })
    try {
      return await send({ base, input, init, call, running, resolved })
    } catch (error) {
      const failure = await failureOf(running, error)
      // a caller that aborts expects its own reason back
      throw callerSignal?.aborted === true && isCausedBy(failure, callerSignal.reason) ? callerSignal.reason : failure
    }
  }
}

/** A request's signal goes deaf once the request has been collected: while the one is followed, the other must live. */
const requestBehind = new WeakMap<AbortSignal, Request>()

interface Sending {
  readonly base: Fetch
  readonly input: string | URL | Request
  readonly init: RequestInit | undefined
  readonly call: RedirectableRequest
  readonly running: RunningOperation
  readonly resolved: ResolvedClientOptions<FetchCall>
}

/** One attempt, and one more for each redirect: to each host its own headers, with what is left by then. */
async function send({ base, input, init, call, running, resolved }: Sending): Promise<Response> {
  const mode = init?.redirect ?? (input instanceof Request ? input.redirect : 'follow')
  const followed = mode === 'follow'
  // sent again after a 307 or 308, when the original's body has been used up
  const spare = followed && input instanceof Request && input.body !== null ? input.clone() : undefined
  let request = call
  for (let hops = 0; ; hops += 1) {
    const target = hops === 0 ? input : request.url
    const response = await runGoverned(running.deadline, () =>
      base(target, {
        ...init,
        ...(hops === 0 ? {} : laterHop(request, spare)),
        headers: withDeadline(request, running.deadline, resolved),
        redirect: followed ? 'manual' : mode,
        signal: running.signal,
      }),
    )
    const next = followed ? redirectTarget(response, request.url) : undefined
    if (next === undefined) return await receive(response, request.url, { running, resolved, redirected: hops > 0 })
    if (hops === mostRedirects) throw fetchFailed('redirect count exceeded')
    await response.body?.cancel()
    request = redirected(request, response.status, next)
  }
}

async function receive(
  response: Response,
  url: URL,
  { running, resolved, redirected: isRedirected }: Pick<Sending, 'running' | 'resolved'> & { readonly redirected: boolean },
): Promise<Response> {
  const outcome = outcomeOfAnswer(
    {
      url,
      status: response.status,
      serverTiming: response.headers.get('server-timing') ?? undefined,
      deadlineOutcome: response.headers.get('x-deadline-outcome') ?? undefined,
    },
    running,
    resolved,
  )
  if (outcome === 'deadline_exceeded') {
    // the peer had all our time and gave up a moment before us: our own deadline is the answer
    await waitOutTheEdge(running)
    if (running.deadline.reason !== undefined) {
      await response.body?.cancel()
      throw running.deadline.reason
    }
  }
  return watchBody(response, running, { outcome, redirected: isRedirected })
}

function laterHop({ method, body }: RedirectableRequest, spare: Request | undefined): RequestInit {
  const streamed = body === undefined ? (spare?.body ?? null) : body
  return { method, body: streamed, ...(streamed instanceof ReadableStream ? { duplex: 'half' } : {}) }
}

function withDeadline(
  request: RedirectableRequest,
  deadline: Deadline,
  resolved: ResolvedClientOptions<FetchCall>,
): Headers {
  const headers = new Headers(request.headers)
  for (const name of resolved.headerNames) headers.delete(name)
  for (const [name, value] of Object.entries(headersFor(request.url, deadline, resolved))) headers.set(name, value)
  return headers
}

function readCall(input: string | URL | Request, init: RequestInit | undefined): RedirectableRequest {
  const request = input instanceof Request ? input : undefined
  return {
    url: new URL(request?.url ?? String(input)),
    method: (init?.method ?? request?.method ?? 'GET').toUpperCase(),
    headers: new Headers(init?.headers ?? request?.headers),
    // undefined: the Request's own, which cannot be had back from it
    body: init?.body ?? (request?.body == null ? null : undefined),
  }
}

function earlier(one: Deadline | undefined, other: Deadline | undefined): Deadline | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return other.remaining() < one.remaining() ? other : one
}

function isCausedBy(failure: unknown, reason: unknown): boolean {
  return failure === reason || (failure instanceof Error && failure.cause === reason)
}
