import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** What becomes of the answer to a call, and of the connection that brought it. */
export type Treatment = 'passed' | 'late' | 'held' | 'begun' | 'reset' | 'closed' | 'begun, then reset'

/** A server that stands before another one on 127.0.0.1 and lets it down. */
export interface Proxy extends AsyncDisposable {
  readonly port: number
  /** The bytes that came from clients, and one for each connection. */
  readonly traffic: number
  /** The next call to come by, or the oldest that nobody has asked for yet. */
  nextCall(): Promise<void>
  /** Resets all connections. */
  reset(): void
  /** Closes all connections, in order. */
  close(): void
}

interface ProxyOptions {
  /** Whether a client's bytes are a call; none are by default. */
  readonly isCall?: (bytes: Buffer) => boolean
  readonly treatment?: Treatment
  /** Bytes of the answer that pass before it breaks off; 1. */
  readonly beginning?: number
}

/** Milliseconds that a `late` answer takes, and a reset after the beginning of one. */
const [lateness, pauseBeforeReset] = [150, 30]

export async function proxyTo(port: number, options: ProxyOptions = {}): Promise<Proxy> {
  const { isCall = () => false, treatment = 'passed', beginning = 1 } = options
  const sockets = new Set<Socket>()
  const waiting: (() => void)[] = []
  let [traffic, calls, taken] = [0, 0, 0]

  const server = createServer((socket) => {
    const upstream = connect(port, '127.0.0.1')
    const both = [socket, upstream] as const
    let isCalled = false
    traffic += 1
    for (const one of both) {
      sockets.add(one)
      one.setNoDelay()
      one.on('error', () => undefined)
      one.once('close', () => {
        sockets.delete(one)
        for (const other of both) other.destroy()
      })
    }
    socket.on('data', (bytes) => {
      traffic += bytes.length
      if (isCall(bytes)) {
        calls += 1
        isCalled = true
        waiting.shift()?.()
        if (treatment === 'reset') return void socket.resetAndDestroy()
        if (treatment === 'closed') return void socket.end()
      }
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => void answer(bytes))

    async function answer(bytes: Buffer): Promise<void> {
      if (!isCalled || treatment === 'passed') return void socket.write(bytes)
      if (treatment === 'held') return
      if (treatment === 'late') {
        await sleep(lateness)
        return void socket.write(bytes)
      }
      upstream.pause()
      socket.write(bytes.subarray(0, beginning))
      if (treatment === 'begun') return
      await sleep(pauseBeforeReset)
      socket.resetAndDestroy()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get traffic() {
      return traffic
    },
    async nextCall() {
      taken += 1
      if (calls < taken) await new Promise<void>((resolve) => waiting.push(resolve))
    },
    reset() {
      for (const socket of sockets) socket.resetAndDestroy()
    },
    close() {
      for (const socket of sockets) socket.end()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
