import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Answer, connectionHeaders } from './answer.ts'
import { http2StreamOf, isHttp2 } from './http2.ts'
import { letConnectionGo } from './let-connection-go.ts'

/** What a handler that was cut off may have said of a body that is not sent now. */
const headersOfABody = [
  'accept-ranges',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-range',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'location',
  'retry-after',
  'server-timing',
  'set-cookie',
  // which rung of a ladder it came from: @timebudget/llm's
  'x-degraded',
]

const statusesWithoutBody: ReadonlySet<number> = new Set([204, 205, 304])

/** How a response is written past everything that later middleware wrapped around it. */
export interface RawWriter {
  readonly writeHead: ServerResponse['writeHead']
  readonly end: ServerResponse['end']
}

/**
 * Writes the answer on a response that has not begun; headers that do not describe a body (CORS, ...) stay. After the last
 * one the connection is not kept.
 */
export function writeAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Answer,
  { writeHead, end }: RawWriter,
  { isLast }: { readonly isLast: boolean },
): void {
  for (const name of headersOfABody) response.removeHeader(name)
  for (const name of connectionHeaders) response.removeHeader(name)
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  const isEmpty = statusesWithoutBody.has(status)
  if (isEmpty) response.removeHeader('content-type')
  else response.setHeader('content-length', Buffer.byteLength(body))
  const isSent = !isEmpty && request.method !== 'HEAD'
  const closing = !request.complete
  if (isLast) letConnectionGo(response)

  if (isHttp2(request)) {
    writeHead.call(response, status)
    Reflect.apply(end, response, isSent ? [body] : [])
    // a reset overtakes headers that nothing follows
    if (closing && isSent) stopUpload(request, response)
    return
  }
  // the rest of the upload would be taken for the next request; who is refused on arrival may have none to send
  if (closing && announcesBody(request)) response.setHeader('connection', 'close')
  Reflect.apply(writeHead, response, [status, STATUS_CODES[status] ?? String(status)])
  Reflect.apply(end, response, isSent ? [body] : [])
}

/** Else whoever uploads could go on for ever, and whoever reads would take what came so far for the whole. */
function stopUpload(request: IncomingMessage, response: ServerResponse): void {
  if (request.listenerCount('error') > 0)
    request.destroy(new Error('the request was answered before its body had ended'))
  http2StreamOf(response)?.close()
}

function announcesBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}
