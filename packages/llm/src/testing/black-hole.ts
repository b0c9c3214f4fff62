import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'

/** An address on 127.0.0.1 whose connections are never made. */
export interface BlackHole {
  readonly url: string
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

// It listens with the shortest queue, in a thread that then stands still and so takes nobody out of it.
const standingStill = `
const { parentPort } = require('node:worker_threads')
const server = require('node:net').createServer()
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort.postMessage(server.address().port)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})`

/** More than such a queue holds: 2 on Linux. */
const fillers = 4

/** Starts a black hole: packets to it are dropped, as by a firewall that says nothing. */
export async function blackHole(): Promise<BlackHole> {
  const worker = new Worker(standingStill, { eval: true })
  const [port] = (await once(worker, 'message')) as [number]
  const sockets = Array.from({ length: fillers }, () => connect(port, '127.0.0.1').on('error', ignore))
  await anyConnected(sockets)
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    await worker.terminate()
  }
  return { url: `http://127.0.0.1:${port}`, close, [Symbol.asyncDispose]: close }
}

/** The first of them has been let in, by when the others have knocked. */
async function anyConnected(sockets: readonly Socket[]): Promise<void> {
  await Promise.race(sockets.map((socket) => once(socket, 'connect')))
}

function ignore(): void {}
