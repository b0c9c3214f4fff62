import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { Http2Server, Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { currentDeadline, type Deadline } from '@timebudget/core'
import { deadlineOf, withDeadline } from '@timebudget/core/server'
import type { App, Host, Listening } from './host.ts'

export const nodeHttp: Host = {
  name: 'node:http',
  protocol: 'http/1.1',
  listen: (app) => listenOn(createServer(listenerOf(app))),
}

export const nodeHttp2: Host = {
  name: 'node:http2',
  protocol: 'h2',
  listen: (app) => listenOn(createHttp2Server(asHttp2Listener(listenerOf(app)))),
}

function listenerOf({
  handler,
  options,
  inner,
  parsesJson,
}: App): (request: IncomingMessage, response: ServerResponse) => void {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (parsesJson === true) for await (const _chunk of request);
    const result = await handler({ request, response, deadline: deadlineFor(request) })
    if (typeof result === 'string') response.end(result)
  }
  return withDeadline(inner === undefined ? answer : withDeadline(answer, inner), options)
}

/** The deadline that a server without a framework of its own finds on the request. */
export function deadlineFor(request: IncomingMessage): Deadline {
  const deadline = deadlineOf(request) ?? currentDeadline()
  if (deadline === undefined) throw new Error('there is no deadline')
  return deadline
}

/** Node's HTTP/2 objects have the shape of those of HTTP/1, by another name. */
export function asHttp2Listener(
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): (request: Http2ServerRequest, response: Http2ServerResponse) => void {
  return listener as never
}

/** Listens on a free port of the loopback. */
export async function listenOn(server: Server | Http2Server): Promise<Listening> {
  server.listen(0)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close')
      server.close()
      if ('closeAllConnections' in server) server.closeAllConnections()
      await closed
    },
  }
}
