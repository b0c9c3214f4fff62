import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Duration, parseDuration } from '../duration.ts'

/** How the upstream misbehaves. */
export interface SlowUpstreamOptions {
  /** Before the answer ends; never by default. */
  readonly delay?: Duration | undefined
  /** Sends status, headers and the first part of the body at once, and only the rest after the delay. */
  readonly startsAtOnce?: boolean | undefined
  readonly status?: number | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | undefined
}

/** A request as the upstream saw it. */
export interface UpstreamRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** Settles when its connection is done with it: `true` if the caller left before the answer was complete. */
  readonly abandoned: Promise<boolean>
}

/** A real server on a free port of 127.0.0.1 that takes its time. */
export interface SlowUpstream {
  readonly url: string
  readonly requests: readonly UpstreamRequest[]
  /** The next request to arrive, or the oldest that nobody has asked for yet. */
  nextRequest(): Promise<UpstreamRequest>
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts a slow upstream. */
export async function slowUpstream(options: SlowUpstreamOptions = {}): Promise<SlowUpstream> {
  const delay = options.delay === undefined ? Infinity : parseDuration(options.delay, 'delay')
  const requests: UpstreamRequest[] = []
  const waiting: Array<(request: UpstreamRequest) => void> = []
  let taken = 0

  const server = createServer((request, response) => {
    const abandoned = once(response, 'close').then(() => !response.writableFinished)
    const seen = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, abandoned }
    requests.push(seen)
    const waiter = waiting.shift()
    if (waiter !== undefined) {
      taken += 1
      waiter(seen)
    }
    response.writeHead(options.status ?? 200, { 'content-type': 'text/plain', ...options.headers })
    if (options.startsAtOnce === true) response.write('begun ')
    if (delay === Infinity) return
    const timer = setTimeout(() => response.end(options.body ?? 'done'), delay)
    response.once('close', () => clearTimeout(timer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  const close = async (): Promise<void> => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests,
    nextRequest() {
      const request = requests[taken]
      if (request === undefined) return new Promise((resolve) => waiting.push(resolve))
      taken += 1
      return Promise.resolve(request)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
