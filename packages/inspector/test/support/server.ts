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

/** What came back. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** Asks with node:http, which neither follows a redirect nor changes a path. */
export async function ask(
  url: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { origin } = new URL(url)
  const asking = request(origin, { path: url.slice(origin.length), method, headers, agent: false })
  asking.end()
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  let body = ''
  for await (const chunk of response.setEncoding('utf8')) body += String(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, body }
}

export async function pause(milliseconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, milliseconds))
}

/** Settles once this is so. */
export async function until(condition: () => unknown): Promise<void> {
  while (!(await condition())) await pause(5)
}
