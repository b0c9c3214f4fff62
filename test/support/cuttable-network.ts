import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A way to a server of this machine that can fail. */
export interface CuttableNetwork {
  readonly url: string
  /** Breaks all connections, and refuses new ones. */
  cut(): void
  restore(): void
  close(): void
}

/** Puts a network before the server at this port of 127.0.0.1. */
export async function networkTo(port: number): Promise<CuttableNetwork> {
  let isCut = false
  const sockets = new Set<Socket>()
  const proxy = createServer((near) => {
    if (isCut) return void near.resetAndDestroy()
    const far = connect(port, '127.0.0.1')
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => other.destroy())
      socket.pipe(other)
    }
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const address = proxy.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const breakAll = (): void => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  return {
    url: `http://127.0.0.1:${address.port}`,
    cut() {
      isCut = true
      breakAll()
    },
    restore() {
      isCut = false
    },
    close() {
      breakAll()
      proxy.close()
    },
  }
}
