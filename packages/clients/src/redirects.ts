/** A request as far as redirects change it. */
export interface RedirectableRequest {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
  readonly body: RequestInit['body']
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const headersOfABody = [
  'content-encoding',
  'content-language',
  'content-location',
  'content-type',
  'content-length',
]
const credentials = ['authorization', 'proxy-authorization', 'cookie', 'host']

/** The Fetch standard's limit. */
export const mostRedirects = 20

/** The Location that a response redirects to, if it does. */
export function redirectTarget(response: Response, from: URL): URL | undefined {
  if (!redirectStatuses.has(response.status)) return undefined
  const location = response.headers.get('location')
  if (location === null) return undefined
  const target = URL.canParse(location, from.href) ? new URL(location, from) : undefined
  if (target === undefined) throw fetchFailed(`the Location of a redirect cannot be read`)
  if (target.protocol !== 'http:' && target.protocol !== 'https:') {
    throw fetchFailed(`a redirect leads to ${target.protocol}, not to http: or https:`)
  }
  if (target.hash === '') target.hash = from.hash
  return target
}

/** The request that follows a redirect, as the Fetch standard has it. */
export function redirected(request: RedirectableRequest, status: number, url: URL): RedirectableRequest {
  const headers = new Headers(request.headers)
  if (url.origin !== request.url.origin) for (const name of credentials) headers.delete(name)
  const becomesGet =
    (status <= 302 && request.method === 'POST') ||
    (status === 303 && request.method !== 'GET' && request.method !== 'HEAD')
  if (!becomesGet) {
    if (isStream(request.body))
      throw fetchFailed('a body that is a stream cannot be sent again after a redirect')
    return { ...request, url, headers }
  }
  for (const name of headersOfABody) headers.delete(name)
  return { url, method: 'GET', headers, body: null }
}

/** The shape in which fetch itself reports a failure. */
export function fetchFailed(why: string): TypeError {
  return new TypeError('fetch failed', { cause: new Error(why) })
}

function isStream(body: RequestInit['body']): boolean {
  return (
    typeof body === 'object' &&
    body !== null &&
    (body instanceof ReadableStream || Symbol.asyncIterator in body)
  )
}
