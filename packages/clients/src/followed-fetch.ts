import type { Deadline, RunningOperation } from '@timebudget/core'
import { runGoverned } from './governed.ts'
import { headersFor, type ResolvedClientOptions } from './outgoing.ts'
import {
  fetchFailed,
  mostRedirects,
  redirected,
  type RedirectableRequest,
  redirectTarget,
} from './redirects.ts'

/** What of a `fetch` is needed: the global one, undici's, or an SDK's. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/** A fetch to make under an operation. */
export interface Sending {
  readonly base: Fetch
  readonly input: string | URL | Request
  readonly init: RequestInit | undefined
  /** What `readRequest` makes of the two. */
  readonly call: RedirectableRequest
  readonly running: RunningOperation
  /** Aborts it; the operation's, or one that follows that. */
  readonly signal: AbortSignal
  readonly resolved: Pick<ResolvedClientOptions<never>, 'propagatesTo' | 'emit' | 'headerNames'>
}

/** The response that the redirects have led to. */
export interface Followed {
  readonly response: Response
  readonly url: URL
  readonly redirected: boolean
}

/** One attempt, and one more for each redirect: to each host its own headers, with what is left by then. */
export async function followUnderDeadline({
  base,
  input,
  init,
  call,
  running,
  signal,
  resolved,
}: Sending): Promise<Followed> {
  const mode = init?.redirect ?? asRequest(input)?.redirect ?? 'follow'
  const followed = mode === 'follow'
  const spares = new SpareBodies(followed && call.body === undefined ? asRequest(input) : undefined)
  let request = call
  for (let hops = 0; ; hops += 1) {
    const target = hops === 0 ? input : request.url
    const response = await runGoverned(running, () =>
      base(target, {
        ...init,
        ...(hops === 0 ? {} : laterHop(request, spares)),
        headers: withDeadline(request, running.deadline, resolved),
        redirect: followed ? 'manual' : mode,
        signal,
      }),
    )
    const next = followed ? redirectTarget(response, request.url) : undefined
    if (next === undefined) {
      spares.discard()
      return { response, url: request.url, redirected: hops > 0 }
    }
    if (hops === mostRedirects) throw fetchFailed('redirect count exceeded')
    await response.body?.cancel()
    if (running.deadline.reason !== undefined) throw running.deadline.reason
    request = redirected(request, response.status, next)
  }
}

/** A Request's body can be read once: a copy is kept to send after a 307 or 308, and one more for the next of them. */
class SpareBodies {
  #spare: Request | undefined

  constructor(request: Request | undefined) {
    this.#spare = request?.clone()
  }

  next(): ReadableStream | null {
    const spare = this.#spare
    this.#spare = spare?.clone()
    return spare?.body ?? null
  }

  /** Or it would be filled with the whole body, for nobody. */
  discard(): void {
    void this.#spare?.body?.cancel()
    this.#spare = undefined
  }
}

function laterHop({ method, body }: RedirectableRequest, spares: SpareBodies): RequestInit {
  const streamed = body === undefined ? spares.next() : body
  return { method, body: streamed, ...(streamed instanceof ReadableStream ? { duplex: 'half' } : {}) }
}

function withDeadline(
  request: RedirectableRequest,
  deadline: Deadline,
  resolved: Sending['resolved'],
): Headers {
  // ours already, and copied by whoever sends them
  const { headers } = request
  const stamped = headersFor(request.url, deadline, resolved)
  for (const name of resolved.headerNames) {
    const value = stamped[name]
    if (value === undefined) headers.delete(name)
    else headers.set(name, value)
  }
  return headers
}

/** What a fetch is asked for. */
export function readRequest(
  input: string | URL | Request,
  init: RequestInit | undefined,
): RedirectableRequest {
  const request = asRequest(input)
  return {
    url: new URL(isRequest(input) ? input.url : input),
    method: (init?.method ?? request?.method ?? 'GET').toUpperCase(),
    headers: new Headers(init?.headers ?? request?.headers),
    // undefined: the Request's own, which cannot be had back from it
    body: init?.body ?? ((request?.body ?? null) === null ? null : undefined),
  }
}

/** A Request, of Node's undici or of another one. */
export function asRequest(input: string | URL | Request): Request | undefined {
  return isRequest(input) ? input : undefined
}

function isRequest(input: string | URL | Request): input is Request {
  return typeof input === 'object' && 'headers' in input
}
