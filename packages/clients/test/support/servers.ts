import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { withDeadline } from '@timebudget/core/server'
import { selfSigned } from './self-signed.ts'

/** A server on a free port of 127.0.0.1. */
export interface TestServer extends AsyncDisposable {
  /** With a slash at its end. */
  readonly url: string
  readonly host: string
  /** How many connections have been opened to it so far. */
  readonly connections: number
}

export function serveHttp(listener: RequestListener): Promise<TestServer> {
  return listen(createHttpServer(listener), 'http:')
}

/** A hop that stands under its caller's deadline. */
export function serveUnderDeadline(listener: RequestListener): Promise<TestServer> {
  // a busy machine is no clock that is wrong
  return serveHttp(withDeadline(listener, { default: '10s', skewTolerance: '5s' }))
}

export function serveHttps(listener: RequestListener): Promise<TestServer> {
  return listen(createHttpsServer(selfSigned, listener), 'https:')
}

/** For what no HTTP server would do: `onRequest` is called once a request's headers are there. */
export function serveRaw(onRequest: (socket: Socket, head: string) => void): Promise<TestServer> {
  const server = createTcpServer((socket) => {
    let head = ''
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      head += chunk.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      const complete = head
      head = ''
      onRequest(socket, complete)
    })
  })
  return listen(server, 'http:')
}

/** A URL at which nobody listens. */
export async function deadUrl(): Promise<string> {
  const server = await serveRaw(() => undefined)
  await server[Symbol.asyncDispose]()
  return server.url
}

async function listen(server: Server, protocol: string): Promise<TestServer> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    host,
    url: `${protocol}//${host}/`,
    get connections() {
      return connections
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
