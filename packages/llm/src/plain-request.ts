/** A call as the text of its address and an init that any fetch can read, our own undici's too. */
export interface PlainRequest {
  readonly url: URL
  readonly init: Omit<RequestInit, 'headers'> & { readonly headers: Headers }
}

/** A request's signal goes deaf once the request has been collected: while the one is followed, the other must live. */
const requestBehind = new WeakMap<AbortSignal, Request>()

/** Takes apart what a fetch is given: the classes of one fetch are strangers to another. */
export async function plainRequest(
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<PlainRequest> {
  if (typeof input === 'string' || input instanceof URL) return { url: new URL(input), init: plainInit(init) }
  requestBehind.set(input.signal, input)
  const { method, headers, redirect, signal } = input
  const body = init.body === undefined && input.body !== null ? await bodyOf(input) : undefined
  return {
    url: new URL(input.url),
    init: plainInit({ method, headers, redirect, signal, ...(body === undefined ? {} : { body }), ...init }),
  }
}

/** A JSON is wanted as text, to see what it asks for. */
async function bodyOf(request: Request): Promise<RequestInit['body']> {
  return /json/i.test(request.headers.get('content-type') ?? '') ? request.text() : request.body
}

function plainInit(given: RequestInit): PlainRequest['init'] {
  const { headers: givenHeaders, body, ...rest } = given
  const headers = new Headers(givenHeaders)
  if (body === undefined || body === null) return { ...rest, headers }
  if (typeof body === 'string' || ArrayBuffer.isView(body)) return { ...rest, headers, body }
  if (body instanceof ReadableStream) return { ...rest, headers, ...streamed(body) }
  // a form, a blob: written out by the fetch whose classes they are
  const written = new Response(body)
  const type = written.headers.get('content-type')
  if (type !== null && !headers.has('content-type')) headers.set('content-type', type)
  return { ...rest, headers, ...(written.body === null ? {} : streamed(written.body)) }
}

function streamed(body: ReadableStream): { readonly body: ReadableStream; readonly duplex: 'half' } {
  return { body, duplex: 'half' }
}
