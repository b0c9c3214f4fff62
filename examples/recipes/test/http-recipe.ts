import { once } from 'node:events'
import { createServer, type IncomingMessage, request as requestOf, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

/** A recipe that serves `/search`, running. */
export interface RunningRecipe {
  readonly url: string
  /** What it has said of faults. */
  faults(): string
  close(): Promise<void>
}

/** What a recipe does besides. */
interface Kind {
  /** The lesser budget of its route, ms. */
  readonly routeBudget?: number
  /** Whether it serves `/stream`, a body without end. */
  readonly streams?: boolean
  /** Whether bodies are read before a handler is entered. */
  readonly parsesBodies?: boolean
}

/** The service behind a recipe; what it does depends on what is searched for. */
interface Index {
  readonly url: string
  readonly calls: IncomingMessage[]
  close(): void
}

const answers: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => void>> = {
  quick: (_request, response) => response.setHeader('content-type', 'application/json').end('["found"]'),
  never: () => {},
  endless: (_request, response) => void response.write('and so on'),
  broken: (request) => request.socket.destroy(),
  unreadable: (_request, response) => response.end('neither JSON nor anything'),
}

async function startIndex(): Promise<Index> {
  const calls: IncomingMessage[] = []
  const server = createServer((request, response) => {
    calls.push(request)
    const words = new URL(request.url ?? '/', 'http://index').searchParams.get('q') ?? ''
    answers[words]?.(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** What every recipe of a web framework must do, as tests; `start` gets the address of the service behind it. */
export function keepsItsDeadline(
  start: (indexUrl: string) => Promise<RunningRecipe>,
  { routeBudget, streams = false, parsesBodies = false }: Kind = {},
): void {
  let index: Index
  let recipe: RunningRecipe

  const search = (words: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${recipe.url}/search?q=${words}`, init)

  beforeAll(async () => {
    index = await startIndex()
    recipe = await start(index.url)
    await (await search('quick')).body?.cancel() // what is loaded with the first request may take longer than there is
  }, 240_000)

  afterAll(async () => {
    await recipe?.close()
    index.close()
    vi.restoreAllMocks()
    vi.unstubAllEnvs()
  })

  const callFor = (words: string): Promise<IncomingMessage> =>
    vi.waitFor(() => {
      const call = index.calls.findLast(({ url }) => url?.endsWith(`q=${words}`))
      if (call === undefined) throw new Error('the service behind has not been called')
      return call
    }, 5_000)

  test('it answers, and tells the service behind it what is left', async () => {
    const sent = Date.now()
    const answer = await search('quick', { headers: { 'x-request-timeout-ms': '10000' } })

    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual(['found'])
    expect(answer.headers.get('server-timing')).toContain('fetch;')
    const { headers } = await callFor('quick')
    const left = Number(headers['x-request-timeout-ms'])
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThanOrEqual(routeBudget ?? 10_000)
    expect(Number(headers['x-request-deadline'])).toBeGreaterThan(sent)
  })

  test('when the time is up it answers 504 and ends its call', async () => {
    const began = performance.now()
    const answer = await search('never', { headers: { 'x-request-timeout-ms': '300' } })

    expect(answer.status).toBe(504)
    expect(performance.now() - began).toBeLessThan(2_500) // 3 s would be the recipe's own
    expect(answer.headers.get('x-deadline-outcome')).toBe('deadline_exceeded')
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(await answer.json()).toMatchObject({ code: 'DEADLINE_EXCEEDED', budget: 300 })
    const call = await callFor('never')
    await vi.waitFor(() => expect(call.destroyed).toBe(true), 5_000)
  })

  test('a user who leaves ends its call', async () => {
    const user = new AbortController()
    index.calls.length = 0
    const answer = search('never', {
      headers: { 'x-request-timeout-ms': '30000' },
      signal: user.signal,
    })
    const call = await callFor('never')
    expect(call.destroyed).toBe(false)

    user.abort()

    await expect(answer).rejects.toThrow('aborted')
    await vi.waitFor(() => expect(call.destroyed).toBe(true), 5_000)
  })

  test('an error of ours that comes before the deadline has its own status', async () => {
    const answer = await search('broken')

    expect(answer.status).toBe(502)
    expect(answer.headers.get('x-deadline-outcome')).toBe('upstream_error')
    expect(await answer.json()).toMatchObject({ code: 'UPSTREAM_ERROR' })
    expect(recipe.faults()).toBe('')
  })

  if (routeBudget !== undefined)
    test('its route has less time than the application', async () => {
      const answer = await search('never')

      expect(answer.status).toBe(504)
      expect(await answer.json()).toMatchObject({ code: 'DEADLINE_EXCEEDED', budget: routeBudget })
    })

  if (parsesBodies)
    test('an upload that stops half way is answered when the time is up', async () => {
      const headers = {
        'content-type': 'application/json',
        'content-length': 100,
        'x-request-timeout-ms': 300,
      }
      const upload = requestOf(`${recipe.url}/search`, { method: 'POST', headers })
      upload.on('error', () => {}) // the connection is not kept
      upload.write('{"half":')

      const [answer] = (await once(upload, 'response')) as [IncomingMessage]
      answer.resume()

      expect(answer.statusCode).toBe(504)
    })

  if (streams)
    test('a body that is under way when the time is up is broken off, and its call ended', async () => {
      const answer = await fetch(`${recipe.url}/stream`, { headers: { 'x-request-timeout-ms': '400' } })

      expect(answer.status).toBe(200)
      await expect(answer.text()).rejects.toThrow('terminated')
      const call = await callFor('endless')
      await vi.waitFor(() => expect(call.destroyed).toBe(true), 5_000)
    })

  if (streams)
    test('a user who leaves in the middle of a body ends its call', async () => {
      index.calls.length = 0
      const answer = await fetch(`${recipe.url}/stream`, { headers: { 'x-request-timeout-ms': '30000' } })
      const call = await callFor('endless')
      expect(call.destroyed).toBe(false)

      await answer.body?.cancel()

      await vi.waitFor(() => expect(call.destroyed).toBe(true), 5_000)
    })

  test('any other error is the framework’s, 500', async () => {
    const answer = await search('unreadable')

    expect(answer.status).toBe(500)
    await vi.waitFor(() => expect(recipe.faults()).toContain('JSON'))
  })
}
