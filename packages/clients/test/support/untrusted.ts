import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, TLSSocket } from 'node:tls'
import { selfSigned } from './self-signed.ts'

export interface UntrustedServer extends AsyncDisposable {
  readonly port: number
}

/** A server over TLS whose certificate nobody vouches for: no client of any protocol ever says a word to it. */
export function serveUntrusted(): Promise<UntrustedServer> {
  return listen(createTlsServer({ ...selfSigned, ALPNProtocols: ['h2'] }))
}

/** The same for clients of PostgreSQL, which ask first whether there is TLS. */
export function serveUntrustedPostgres(): Promise<UntrustedServer> {
  return listen(
    createServer((socket) => {
      socket.once('data', () => {
        socket.write('S')
        new TLSSocket(socket, { isServer: true, ...selfSigned }).on('error', () => undefined)
      })
    }),
  )
}

async function listen(server: Server): Promise<UntrustedServer> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => undefined)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
