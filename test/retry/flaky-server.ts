import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A server on a port of its own, closed with the test, and what each request that came said of its attempt. */
export interface Peer {
  readonly url: string
  /** `X-Request-Attempt` of each request, in order. */
  readonly attempts: readonly (string | undefined)[]
  readonly requests: readonly IncomingMessage[]
}

/** Listens until the test is over. */
export async function listen(listener: RequestListener): Promise<Peer> {
  const attempts: (string | undefined)[] = []
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    attempts.push(request.headers['x-request-attempt']?.toString())
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, attempts, requests }
}

/** Answers 503 so many times, and then 200. */
export function flakyFor(failures: number): Promise<Peer> {
  let answered = 0
  return listen((request, response) => {
    request.resume()
    answered += 1
    if (answered <= failures) response.writeHead(503, { 'content-type': 'text/plain' }).end('not now')
    else response.writeHead(200, { 'content-type': 'text/plain' }).end('here')
  })
}

/** A URL at which nobody listens any more. */
export async function nowhere(): Promise<string> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `http://127.0.0.1:${port}/`
}
