import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'

/** Whether the request came over HTTP/2, whose objects have the shape of those of HTTP/1 and ends of their own. */
export function isHttp2(request: IncomingMessage): boolean {
  return request.httpVersionMajor >= 2
}

/** The stream behind an HTTP/2 response. */
export function http2StreamOf(response: ServerResponse): ServerHttp2Stream | undefined {
  return (response as ServerResponse & { readonly stream?: ServerHttp2Stream }).stream
}
