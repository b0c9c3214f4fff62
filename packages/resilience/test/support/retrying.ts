import { retryDecided, type RetryDecided } from '@timebudget/core'
import type { ManualClock } from '@timebudget/core/testing'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** Lets all that is due happen, without turning any clock. */
export const calm = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Turns the clock millisecond by millisecond, with everything that happens on the way. */
export async function turn(clock: ManualClock, milliseconds: number): Promise<void> {
  await calm()
  for (let passed = 0; passed < milliseconds; passed += 1) {
    clock.advance(1)
    await calm()
  }
}

/** What a promise fails with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

/** The messages of an error, its cause, the cause's cause, and so on. */
export function told(error: unknown): string[] {
  return error instanceof Error ? [error.message, ...told(error.cause)] : []
}

/** An error of the network's. */
export function networkError(code: string, members: Record<string, unknown> = {}): Error {
  return Object.assign(new Error(code), { code, ...members })
}

/** What is decided on while `work` runs. */
export async function decisionsOf(work: () => Promise<unknown>): Promise<RetryDecided[]> {
  const decisions: RetryDecided[] = []
  const unsubscribe = retryDecided.subscribe((event) => decisions.push(event))
  try {
    await work().catch(() => undefined)
  } finally {
    unsubscribe()
  }
  return decisions
}

/** A real server, and what has come in. */
export interface Served {
  readonly url: string
  readonly hits: readonly IncomingMessage[]
  /** Connections that are open now. */
  readonly open: ReadonlySet<Socket>
  [Symbol.asyncDispose](): Promise<void>
}

/** Serves on a free port; `hit` counts from 1. */
export async function serve(
  answer: (response: ServerResponse, hit: number, request: IncomingMessage) => void,
): Promise<Served> {
  const hits: IncomingMessage[] = []
  const open = new Set<Socket>()
  const server = createServer((request, response) => {
    hits.push(request)
    answer(response, hits.length, request)
  })
  server.on('connection', (socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    hits,
    open,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Waits until something is so; the test's own time limit ends a vain wait. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2))
}
