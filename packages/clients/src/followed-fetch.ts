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
        signal,
      }),
    )
    const next = followed ? redirectTarget(response, request.url) : undefined
    if (next === undefined) return { response, url: request.url, redirected: hops > 0 }
    if (hops === mostRedirects) throw fetchFailed('redirect count exceeded')
    await response.body?.cancel()
    request = redirected(request, response.status, next)
  }
}

function laterHop({ method, body }: RedirectableRequest, spare: Request | undefined): RequestInit {
  const streamed = body === undefined ? (spare?.body ?? null) : body
  return { method, body: streamed, ...(streamed instanceof ReadableStream ? { duplex: 'half' } : {}) }
}

function withDeadline(
  request: RedirectableRequest,
  deadline: Deadline,
  resolved: Sending['resolved'],
): Headers {
  const headers = new Headers(request.headers)
  for (const name of resolved.headerNames) headers.delete(name)
  for (const [name, value] of Object.entries(headersFor(request.url, deadline, resolved)))
    headers.set(name, value)
  return headers
}

/** What a fetch is asked for. */
export function readRequest(
  input: string | URL | Request,
  init: RequestInit | undefined,
): RedirectableRequest {
  const request = input instanceof Request ? input : undefined
  return {
    url: new URL(request?.url ?? String(input)),
    method: (init?.method ?? request?.method ?? 'GET').toUpperCase(),
    headers: new Headers(init?.headers ?? request?.headers),
    // undefined: the Request's own, which cannot be had back from it
    body: init?.body ?? (request?.body == null ? null : undefined),
  }
}
