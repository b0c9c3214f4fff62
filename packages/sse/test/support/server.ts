import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type RequestListener, type Server } from 'node:http'
import { afterEach } from 'vitest'

const closers: (() => unknown)[] = []

/** Runs when the test is over, the latest first. */
export function onEnd(close: () => unknown): void {
  closers.push(close)
}

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

/** A server on a free port, closed with its connections when the test is over. */
export async function listen(listener: RequestListener): Promise<string> {
  return listening(createServer(listener))
}

export async function listening(server: Server): Promise<string> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  onEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}`
}

/** A response as it arrives. */
export interface Arriving {
  readonly response: IncomingMessage
  /** All that has come so far. */
  text(): string
  /** Settles once so much has come that the text matches; rejects if the response ends before. */
  until(pattern: RegExp): Promise<string>
  /** How it ended: whole, or broken off. */
  readonly ended: Promise<'whole' | 'broken'>
  leave(): void
}

/** Asks with node:http, which hides nothing. */
export async function open(
  url: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Arriving> {
  const asking = request(url, { method, headers, agent: false })
  asking.end()
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  asking.on('error', () => {})
  response.on('error', () => {})
  let text = ''
  const checks = new Set<() => void>()
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    text += chunk
    for (const check of checks) check()
  })
  const ended = new Promise<'whole' | 'broken'>((resolve) => {
    response.once('close', () => {
      resolve(response.complete ? 'whole' : 'broken')
      for (const check of checks) check()
    })
  })
  onEnd(() => asking.destroy())
  return {
    response,
    text: () => text,
    ended,
    leave: () => void asking.destroy(),
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (pattern.test(text)) resolve(text)
          else if (response.destroyed) reject(new Error(`ended without ${pattern}: ${text}`))
          else return
          checks.delete(check)
        }
        checks.add(check)
        check()
      }),
  }
}

/** Settles, with the value, once somebody has said so. */
export interface Signal<T = void> {
  readonly promise: Promise<T>
  resolve(value: T): void
}

export function signal<T = void>(): Signal<T> {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((resolver) => {
    resolve = resolver
  })
  return { promise, resolve }
}

/** Settles when an abort has come, with its reason. */
export function aborted(abortable: AbortSignal): Promise<unknown> {
  if (abortable.aborted) return Promise.resolve(abortable.reason)
  return new Promise((resolve) => {
    abortable.addEventListener('abort', () => resolve(abortable.reason), { once: true })
  })
}

export async function pause(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds))
}
