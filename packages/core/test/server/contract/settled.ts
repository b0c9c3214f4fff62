import { getEventListeners } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { Handler, Host } from '../host.ts'

const connections = 10
const perBatch = 50
/** Far less than what ten thousand requests take. */
const mostGrowth = 6_000_000

/** Sends many requests over few connections and waits for all the answers; returns how to close what is kept open. */
async function load({ protocol }: Host, port: number, requests: number): Promise<() => void> {
  const run = protocol === 'h2' ? loadHttp2 : loadHttp1
  const kept = await Promise.all(Array.from({ length: connections }, () => run(port, requests / connections)))
  return () => kept.forEach((connection) => connection.destroy())
}

async function loadHttp1(port: number, count: number): Promise<{ destroy(): void }> {
  const socket = connect(port, 'localhost')
  let answered = 0
  let tell = (): void => {}
  socket.setEncoding('latin1').on('data', (text: string) => {
    answered += text.split('!').length - 1
    tell()
  })
  for (let sent = 0; sent < count; sent += perBatch) {
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(perBatch))
    await new Promise<void>((resolve) => {
      tell = () => {
        if (answered >= sent + perBatch) resolve()
      }
    })
  }
  return socket
}

async function loadHttp2(port: number, count: number): Promise<{ destroy(): void }> {
  const session = connectHttp2(`http://localhost:${port}`)
  for (let sent = 0; sent < count; sent += perBatch) {
    await Promise.all(
      Array.from(
        { length: perBatch },
        () => new Promise((resolve) => session.request({ ':path': '/' }).resume().on('close', resolve).end()),
      ),
    )
  }
  return session
}

async function heapInUse(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    await new Promise(setImmediate)
    globalThis.gc?.()
  }
  return process.memoryUsage().heapUsed
}

/** Law 4: nothing is held once a request is over. */
export function settledContract(host: Host): void {
  describe('law 4: after thousands of requests', () => {
    test('there is no timer, no listener and no memory held of them', { timeout: 60_000 }, async () => {
      const shutdown = new AbortController()
      const warnings: Error[] = []
      const onWarning = (warning: Error): void => void warnings.push(warning)
      process.on('warning', onWarning)
      let mostListeners = 0
      const handler: Handler = ({ request, deadline }) => {
        deadline.signal.addEventListener('abort', () => {})
        if (host.protocol === 'http/1.1') mostListeners = Math.max(mostListeners, listenersOn(request.socket))
        return '!'
      }
      const options = { default: '1h', max: '1h', shutdownSignal: shutdown.signal }
      const server = await host.listen({ handler, options })
      const close = await load(host, server.port, 2_000)
      close()
      const listenersBefore = mostListeners
      const timersBefore = timers()
      const heapBefore = await heapInUse()
      const closeLater = await load(host, server.port, host.protocol === 'h2' ? 2_000 : 10_000)
      expect((await heapInUse()) - heapBefore).toBeLessThan(mostGrowth)
      expect(timers()).toBeLessThanOrEqual(timersBefore + 1)
      expect(mostListeners).toBeLessThanOrEqual(listenersBefore)
      expect(getEventListeners(shutdown.signal, 'abort')).toHaveLength(1)
      expect(warnings).toEqual([])
      process.off('warning', onWarning)
      closeLater()
      await server.close()
    })
  })
}

function listenersOn(socket: Socket): number {
  return socket.eventNames().reduce((sum, name) => sum + socket.listenerCount(name), 0)
}

function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
}
