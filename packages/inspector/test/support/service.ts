import { createServer, request as ask, type IncomingMessage, type ServerResponse } from 'node:http'
import { currentDeadline, operation } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { inspector, type InspectorOptions } from '../../src/index.ts'
import { listening, onEnd, pause } from './server.ts'

/** What a path of the service does; it answers what it returns. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<string> | string

/** A service under deadlines with the inspector on it. */
export interface Service {
  readonly url: string
  readonly inspector: string
  readonly server: ReturnType<typeof createServer>
  /** Asks for a path and leaves the answer alone. */
  visit(path: string, options?: { method?: string; headers?: Record<string, string> }): () => void
}

/** Serves handlers by path; `/quote` and others that show every kind of outcome are there already. */
export async function startService(
  handlers: Readonly<Record<string, Handler>> = {},
  options?: InspectorOptions,
): Promise<Service> {
  const inspect = inspector(options)
  onEnd(() => inspect.close())
  const all: Readonly<Record<string, Handler>> = { ...kinds, ...handlers }
  const server = createServer(
    withDeadline(
      (request, response) =>
        inspect(request, response, () => void answer(all[pathOf(request)], request, response)),
      { default: '1s' },
    ),
  )
  const url = await listening(server)
  return {
    url,
    inspector: `${url}/__budget/`,
    server,
    visit(path, { method = 'GET', headers = {} } = {}) {
      const asking = ask(url + path, { method, headers, agent: false })
      asking.on('error', () => {}).on('response', (response) => response.resume())
      asking.end()
      return () => void asking.destroy()
    },
  }
}

function pathOf({ url = '/' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? ''
}

async function answer(
  handler: Handler | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    if (handler === undefined) response.writeHead(404).end()
    else response.end(await handler(request, response))
  } catch (error) {
    if (!response.headersSent) response.writeHead(500).end(String(error))
  }
}

/** An operation that takes so long, cut at its timeout. */
function take(milliseconds: number): (scope: { readonly signal: AbortSignal }) => Promise<void> {
  return async ({ signal }) => {
    await Promise.race([
      pause(milliseconds),
      new Promise((resolve) => signal.addEventListener('abort', resolve)),
    ])
  }
}

const kinds: Readonly<Record<string, Handler>> = {
  async '/quote'() {
    // shares of the budget: a picture has a tight one, what has to end well has a long one
    const budget = currentDeadline()?.budget ?? 1_000
    await operation('retrieve', { timeout: budget * 0.3, floor: '40ms' }, async () => {
      await operation('embed', { timeout: budget * 0.2 }, take(30))
      await operation('search', { timeout: budget * 0.25 }, take(60))
    })
    await operation('generate', { reserve: budget * 0.15, floor: '200ms' }, take(220))
    return 'worked'
  },
  async '/limited'() {
    await operation('rerank', { timeout: '120ms' }, take(5_000)).catch(() => {})
    await operation('generate', { floor: '1h' }, take(10)).catch(() => {})
    await operation('price', {}, () => Promise.reject(new TypeError('no'))).catch(() => {})
    return 'did without'
  },
  async '/slow'() {
    await operation('generate', { reserve: '100ms' }, take(20_000))
    return 'never'
  },
  async '/hang'() {
    await pause(60_000)
    return 'never'
  },
  '/fail'(_request, response) {
    response.statusCode = 500
    return 'failed'
  },
}
