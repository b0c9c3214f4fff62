import type { ServerResponse } from 'node:http'
import { http2StreamOf, isHttp2 } from './http2.ts'
import { ResponseHead } from './response-head.ts'

/**
 * Tells the client that its next request has to go elsewhere. A server that has stopped to listen keeps the connections
 * on which it is still answering, so whoever goes on asking over one would keep the process, too.
 */
export function letConnectionGo(
  response: ServerResponse,
  head: ResponseHead = new ResponseHead(response, []),
): void {
  if (isHttp2(response.req)) http2StreamOf(response)?.session?.close()
  else head.set('connection', 'close')
}
