import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import * as undici7 from 'undici'
import * as undici6 from 'undici6'
import { Deadline, runWithDeadline } from '@timebudget/core'
import { ManualClock, slowUpstream } from '@timebudget/core/testing'
import { type Fetch, wrapFetch } from '../src/fetch.ts'
import { deadlineInterceptor, type Interceptor, type InterceptorOptions } from '../src/undici.ts'
import { codesOf, failureOf, onlyEntry, pause, underDeadline, until } from './support/calls.ts'
import { deferred } from './support/deferred.ts'
import { through } from './support/fetches.ts'
import { serveHttp, serveRaw, type TestServer } from './support/servers.ts'

const absolute = 'x-request-deadline'
const relative = 'x-request-timeout-ms'

interface Governed extends AsyncDisposable {
  readonly agent: undici7.Dispatcher
  readonly undici: typeof undici7
}

/** An Agent of that undici under our interceptor. */
function govern(
  undici: typeof undici7,
  options?: InterceptorOptions,
  agentOptions?: undici7.Agent.Options,
): Governed {
  const agent = new undici.Agent(agentOptions)
  return {
    undici,
    agent: agent.compose(deadlineInterceptor(options)),
    [Symbol.asyncDispose]: () => agent.destroy(),
  }
}

/** A server that notes what it is asked and answers as told. */
function noting(
  seen: IncomingMessage[],
  answer: (
    request: IncomingMessage,
    turn: number,
  ) => { status: number; headers?: Record<string, string>; after?: number },
): Promise<TestServer> {
  return serveHttp(async (request, response) => {
    seen.push(request)
    const { status, headers, after = 0 } = answer(request, seen.length)
    await pause(after)
    response.writeHead(status, headers ?? {}).end('done')
  })
}

const sent = (request: IncomingMessage | undefined): number => Number(request?.headers[relative])

describe.each([
  { version: 7, undici: undici7 },
  // between its majors undici's types differ in what nobody here uses
  { version: 6, undici: undici6 as unknown as typeof undici7 },
])('undici $version', ({ version, undici }) => {
  test('a call that waits for a connection is not sent when its time is up, however late the timers are', async () => {
    const seen: IncomingMessage[] = []
    const release = deferred<void>()
    await using server = await serveHttp(async (request, response) => {
      seen.push(request)
      await release.promise
      response.end('done')
    })
    await using governed = govern(undici, {}, { connections: 2 })
    const ask = (path: string): Promise<string> =>
      governed.undici
        .request(server.url + path, { dispatcher: governed.agent })
        .then(({ body }) => body.text())
    const clock = new ManualClock()
    const before = [ask('first'), ask('second')]
    await until(() => seen.length === 2)
    const third = runWithDeadline(Deadline.after(1_000, { clock }), () => ask('third'))
    clock.block(1_000)
    release.resolve()
    await expect(third).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    expect(await Promise.all(before)).toEqual(['done', 'done'])
    expect(seen).toHaveLength(2)
  })

  test.each([
    { form: 'a record', headers: { 'x-own': 'a', 'X-Many': ['1', '2'], [absolute]: '1' } },
    { form: 'a flat list', headers: ['x-own', 'a', 'X-Many', '1', 'X-Many', '2', 'X-Request-Deadline', '1'] },
    {
      form: 'a Map',
      headers: new Map<string, string | string[]>([
        ['x-own', 'a'],
        ['X-Many', ['1', '2']],
        [absolute, '1'],
      ]),
    },
    {
      form: 'Headers',
      headers: new Headers([
        ['x-own', 'a'],
        ['x-many', '1'],
        ['x-many', '2'],
        [absolute, '1'],
      ]),
    },
  ])('headers may be $form', async ({ headers }) => {
    const seen: IncomingMessage[] = []
    await using server = await noting(seen, () => ({ status: 200 }))
    await using governed = govern(undici)
    await underDeadline(2_000, async (deadline) => {
      const { body } = await undici.request(server.url, { dispatcher: governed.agent, headers })
      await body.text()
      expect(seen[0]?.headers).toMatchObject({ 'x-own': 'a', 'x-many': '1, 2' })
      expect(seen[0]?.headers[absolute]).toBe(String(deadline.expiresAt))
      expect(seen[0]?.rawHeaders.filter((name) => name.toLowerCase() === absolute)).toHaveLength(1)
      expect(sent(seen[0])).toBeLessThanOrEqual(2_000)
    })
  })

  test('headers that undici refuses are refused by undici', async () => {
    await using governed = govern(undici)
    for (const headers of [['odd'], 'text'] as unknown as string[][]) {
      await underDeadline(2_000, async (deadline) => {
        const failure = await failureOf(
          undici.request('http://127.0.0.1:1/', { dispatcher: governed.agent, headers }),
        )
        expect(codesOf(failure)).toContain('UND_ERR_INVALID_ARG')
        expect(onlyEntry(deadline).outcome).toBeDefined()
      })
    }
  })

  test('each retry goes out with what is left by then, and the request has one operation', async () => {
    const seen: IncomingMessage[] = []
    await using server = await noting(seen, (_request, turn) => ({ status: turn < 3 ? 503 : 200, after: 30 }))
    const retry = undici.interceptors.retry({ minTimeout: 40, timeoutFactor: 1 })
    await using governed = govern(undici, { inside: [retry] })
    await underDeadline(5_000, async (deadline) => {
      const { body } = await undici.request(server.url, { dispatcher: governed.agent })
      expect(await body.text()).toBe('done')
      expect(onlyEntry(deadline).outcome).toBe('ok')
    })
    const [first, second, third] = seen.map(sent)
    expect(seen).toHaveLength(3)
    expect(second).toBeLessThanOrEqual((first ?? 0) - 65)
    expect(third).toBeLessThanOrEqual((second ?? 0) - 65)
    expect(new Set(seen.map(({ headers }) => headers[absolute])).size).toBe(1)
  })

  test('the deadline ends a retry that pauses, and nothing goes out afterwards', async () => {
    const seen: IncomingMessage[] = []
    await using server = await noting(seen, () => ({ status: 503 }))
    const retry = undici.interceptors.retry({ minTimeout: 300, timeoutFactor: 1 })
    await using governed = govern(undici, { inside: [retry] })
    await underDeadline(100, async (deadline) => {
      const failure = await failureOf(undici.request(server.url, { dispatcher: governed.agent }))
      expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      expect(deadline.elapsed()).toBeLessThan(200)
      await pause(350)
      expect(seen).toHaveLength(1)
      expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
    })
  })

  test('the caller ends a retry that pauses, and nothing goes out afterwards', async () => {
    const seen: IncomingMessage[] = []
    await using server = await noting(seen, () => ({ status: 503 }))
    const retry = undici.interceptors.retry({ minTimeout: 300, timeoutFactor: 1 })
    await using governed = govern(undici, { inside: [retry] })
    await underDeadline(5_000, async (deadline) => {
      const controller = new AbortController()
      const failed = failureOf(
        undici.request(server.url, { dispatcher: governed.agent, signal: controller.signal }),
      )
      while (seen.length === 0) await pause(5)
      await pause(30)
      const [reason, aborted] = [new Error('changed my mind'), performance.now()]
      controller.abort(reason)
      expect(await failed).toBe(reason)
      expect(performance.now() - aborted).toBeLessThan(100)
      await pause(350)
      expect(seen).toHaveLength(1)
      expect(onlyEntry(deadline).outcome).toBe('cancelled')
    })
  })

  test('the deadline reaches the connection of a second attempt', async () => {
    let abandoned: Promise<unknown> | undefined
    let turn = 0
    await using server = await serveHttp((_request, response) => {
      turn += 1
      if (turn === 1) return response.writeHead(503).end()
      abandoned = once(response, 'close')
      return undefined
    })
    const retry = undici.interceptors.retry({ minTimeout: 20 })
    await using governed = govern(undici, { inside: [retry] })
    await underDeadline(200, async () => {
      const failure = await failureOf(undici.request(server.url, { dispatcher: governed.agent }))
      expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      await abandoned
      expect(turn).toBe(2)
    })
  })

  test('a retry that gives up says so at once', async () => {
    await using server = await noting([], () => ({ status: 503 }))
    const retry = undici.interceptors.retry({ minTimeout: 10, timeoutFactor: 1, maxRetries: 2 })
    await using governed = govern(undici, { inside: [retry] })
    await underDeadline(5_000, async (deadline) => {
      const failure = await failureOf(undici.request(server.url, { dispatcher: governed.agent }))
      expect(codesOf(failure)).toEqual(['UPSTREAM_ERROR', 'UND_ERR_REQ_RETRY'])
      expect(deadline.elapsed()).toBeLessThan(2_000)
    })
  })

  test('each redirect goes out with what is left by then, judged anew by its host', async () => {
    const [here, there]: [IncomingMessage[], IncomingMessage[]] = [[], []]
    await using stranger = await noting(there, () => ({
      status: 200,
      headers: { 'server-timing': 'theirs;dur=1' },
    }))
    await using server = await noting(here, (request) => ({
      status: 302,
      headers: { location: request.url === '/first' ? '/second' : stranger.url },
      after: 40,
    }))
    const redirect = undici.interceptors.redirect({ maxRedirections: 5 })
    const rules = { propagateTo: [server.host], trust: [server.host] }
    await using governed = govern(undici, { inside: [redirect], ...rules })
    await underDeadline(5_000, async (deadline) => {
      const { body } = await undici.request(`${server.url}first`, { dispatcher: governed.agent })
      expect(await body.text()).toBe('done')
      expect(onlyEntry(deadline).outcome).toBe('ok') // and nothing of the stranger's
    })
    expect(here.map(({ url }) => url)).toEqual(['/first', '/second'])
    expect(sent(here[1])).toBeLessThanOrEqual(sent(here[0]) - 39)
    expect(there[0]?.headers[absolute]).toBeUndefined()
    expect(there[0]?.headers[relative]).toBeUndefined()
  })

  test('a call that waited for a connection carries what is left after the wait', async () => {
    const seen: IncomingMessage[] = []
    await using server = await noting(seen, () => ({ status: 200, after: 200 }))
    await using governed = govern(undici, {}, { connections: 2 })
    const call = async (): Promise<string> =>
      (await undici.request(server.url, { dispatcher: governed.agent })).body.text()
    await underDeadline(5_000, () => Promise.all([call(), call(), call()]))
    const [first = 0, , third = 0] = seen.map(sent)
    expect(third).toBeLessThanOrEqual(first - 150)
  })

  test('an interceptor below ours may copy the headers and change them', async () => {
    const seen: IncomingMessage[] = []
    await using server = await noting(seen, () => ({ status: 200 }))
    const agent = new undici.Agent()
    const copying = agent.compose(
      (dispatch) => (call, handler) =>
        dispatch({ ...call, headers: { ...(call.headers as object), 'x-copied': 'yes' } }, handler),
      (dispatch) => (call, handler) => {
        Object.assign(call.headers ?? {}, { 'x-added': 'yes' })
        return dispatch(call, handler)
      },
      deadlineInterceptor(),
    )
    await underDeadline(2_000, async () =>
      (await undici.request(server.url, { dispatcher: copying })).body.text(),
    )
    expect(seen[0]?.headers).toMatchObject({ 'x-copied': 'yes', 'x-added': 'yes' })
    expect(seen[0]?.headers[absolute]).toMatch(/^\d{13}$/)
    await agent.destroy()
  })

  test("a Pool's own request names no host: rules match it only if the interceptor was told where it goes", async () => {
    const seen: IncomingMessage[] = []
    const timing = { 'server-timing': 'retrieve;dur=1' }
    await using server = await noting(seen, () => ({ status: 200, headers: timing }))
    const pool = new undici.Pool(server.url.slice(0, -1))
    const ask = async (options: InterceptorOptions): Promise<number> => {
      const governed = pool.compose(deadlineInterceptor(options))
      return underDeadline(2_000, async (deadline) => {
        await (await governed.request({ path: '/', method: 'GET' })).body.text()
        return deadline.ledger.entries.length
      })
    }
    expect(await ask({ propagateTo: ['127.0.0.1', 'localhost'] })).toBe(1)
    expect(await ask({})).toBe(1)
    expect(await ask({ propagateTo: ['127.0.0.1'], origin: server.url })).toBe(2)
    expect(seen.map(({ headers }) => headers[absolute] !== undefined)).toEqual([false, true, true])
    await pool.destroy()
  })

  test('a path that looks like another host is a path', async () => {
    const seen: IncomingMessage[] = []
    await using server = await noting(seen, () => ({ status: 200 }))
    await using governed = govern(undici, { propagateTo: ['api.internal'] })
    await underDeadline(2_000, async () => {
      const call = { origin: server.url.slice(0, -1), path: '//api.internal/x', method: 'GET' } as const
      await (await governed.agent.request(call)).body.text()
    })
    expect(seen[0]?.url).toBe('//api.internal/x')
    expect(seen[0]?.headers[absolute]).toBeUndefined()
  })

  test('stream and pipeline keep the deadline too', async () => {
    await using server = await noting([], () => ({ status: 200 }))
    await using stalled = await slowUpstream({ startsAtOnce: true })
    await using governed = govern(undici)
    const { agent } = governed
    const readWith = async (url: string): Promise<string> => {
      let received = ''
      await undici.stream(url, { dispatcher: agent, method: 'GET' }, () => {
        const write = (chunk: Buffer, _encoding: unknown, done: () => void): void => {
          received += chunk.toString()
          done()
        }
        return new Writable({ write })
      })
      return received
    }
    const pipeThrough = (url: string): Promise<string> => {
      const duplex = undici.pipeline(url, { dispatcher: agent, method: 'POST' }, ({ body }) => body)
      duplex.end('ping')
      return text(duplex)
    }
    await underDeadline(2_000, async (deadline) => {
      expect(await readWith(server.url)).toBe('done')
      expect(await pipeThrough(server.url)).toBe('done')
      expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
    })
    await underDeadline(150, async (deadline) => {
      const failures = await Promise.all([
        failureOf(readWith(stalled.url)),
        failureOf(pipeThrough(stalled.url)),
      ])
      for (const failure of failures) expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual([
        'deadline_exceeded',
        'deadline_exceeded',
      ])
    })
  })

  test('upgrade and CONNECT hand over a socket that outlives the deadline', async () => {
    await using server = await serveRaw((socket, head) => {
      const answer = head.startsWith('CONNECT')
        ? 'HTTP/1.1 200 Connected\r\n\r\n'
        : 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n'
      socket.write(answer)
      socket.on('data', (chunk: Buffer) => socket.write(chunk))
    })
    await using governed = govern(undici)
    const dispatcher = governed.agent
    await underDeadline(200, async (deadline) => {
      const upgraded = await undici.upgrade(server.url, { dispatcher, protocol: 'echo' })
      const connected = await undici.connect(server.url, { dispatcher })
      expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
      while (!deadline.expired) await pause(20)
      for (const { socket } of [upgraded, connected]) {
        socket.write('ping')
        const [chunk] = (await once(socket, 'data')) as [Buffer]
        expect(chunk.toString()).toBe('ping')
        socket.destroy()
      }
    })
  })

  test('an upgrade that is not answered ends at the deadline', async () => {
    await using server = await serveRaw(() => undefined)
    await using governed = govern(undici)
    await underDeadline(150, async (deadline) => {
      const failure = await failureOf(
        undici.upgrade(server.url, { dispatcher: governed.agent, protocol: 'echo' }),
      )
      expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
    })
  })

  test('a body that the caller destroys is no failure', async () => {
    await using upstream = await slowUpstream({ startsAtOnce: true })
    await using governed = govern(undici)
    await underDeadline(2_000, async (deadline) => {
      const { body } = await undici.request(upstream.url, { dispatcher: governed.agent })
      body.on('error', () => undefined)
      body.destroy()
      expect(await (await upstream.nextRequest()).abandoned).toBe(true)
      expect(onlyEntry(deadline).outcome).toBe('cancelled')
    })
  })

  test('back pressure passes', async () => {
    const size = 4 * 1024 * 1024
    await using server = await serveHttp((_request, response) => response.end(Buffer.alloc(size)))
    await using governed = govern(undici)
    await underDeadline(5_000, async (deadline) => {
      const { body } = await undici.request(server.url, { dispatcher: governed.agent })
      await pause(50)
      let received = 0
      for await (const chunk of body as AsyncIterable<Buffer>) received += chunk.byteLength
      expect(received).toBe(size)
      expect(onlyEntry(deadline).outcome).toBe('ok')
    })
  })

  test('the errors of a call without a deadline are untouched', async () => {
    await using governed = govern(undici, { floor: 1_000 })
    const failure = await failureOf(undici.request('http://127.0.0.1:1/', { dispatcher: governed.agent }))
    expect(codesOf(failure)).toEqual(['ECONNREFUSED'])
  })

  test('a call refused under its floor throws where undici expects it, in each of its ways to call', async () => {
    await using server = await noting([], () => ({ status: 200 }))
    await using governed = govern(undici, { floor: 1_000 })
    const { agent: dispatcher } = governed
    await underDeadline(100, async () => {
      const failures = await Promise.all([
        failureOf(undici.request(server.url, { dispatcher })),
        failureOf(undici.stream(server.url, { dispatcher, method: 'GET' }, () => new Writable())),
        failureOf(text(undici.pipeline(server.url, { dispatcher, method: 'GET' }, ({ body }) => body).end())),
        failureOf(undici.upgrade(server.url, { dispatcher })),
        failureOf(undici.connect(server.url, { dispatcher })),
        failureOf(undici.fetch(server.url, { dispatcher })),
      ])
      for (const failure of failures) expect(codesOf(failure)).toContain('BUDGET_TOO_SMALL')
    })
    expect(server.connections).toBe(0)
  })

  test('a connection that cannot be made in time is given up', async () => {
    await using server = await serveRaw(() => undefined)
    await using governed = govern(undici, {}, { connect: (_options, _callback) => undefined })
    await underDeadline(100, async (deadline) => {
      const failure = await failureOf(undici.request(server.url, { dispatcher: governed.agent }))
      expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      expect(deadline.elapsed()).toBeLessThan(250)
    })
  })

  test('an answer that comes late, while the process was busy, does not count', async () => {
    await using server = await noting([], () => ({ status: 200 }))
    const agent = new undici.Agent()
    // the answer is there before a timer can run
    const busy: Interceptor = (dispatch) => (call, handler) =>
      dispatch(
        call,
        new Proxy(handler, {
          get(target, name) {
            const ends = performance.now() + 250
            if (name === 'onHeaders' || name === 'onResponseStart') while (performance.now() < ends);
            const member: unknown = Reflect.get(target, name)
            return typeof member === 'function' ? member.bind(target) : member
          },
        }),
      )
    const dispatcher = agent.compose(busy, deadlineInterceptor())
    await underDeadline(200, async (deadline) => {
      const failure = await failureOf(undici.request(server.url, { dispatcher }))
      expect(codesOf(failure)).toContain('DEADLINE_EXCEEDED')
      expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
    })
    await agent.destroy()
  })

  test('wrapFetch over our own dispatcher is one operation, and writes once', async () => {
    const seen: IncomingMessage[] = []
    await using server = await noting(seen, () => ({ status: 200 }))
    await using governed = govern(undici)
    const fetch = wrapFetch(undici.fetch as unknown as Fetch)
    await underDeadline(2_000, async (deadline) => {
      await (await fetch(server.url, through(governed.agent))).text()
      expect(onlyEntry(deadline)).toMatchObject({ name: 'fetch', outcome: 'ok' })
    })
    expect(seen[0]?.rawHeaders.filter((name) => name.toLowerCase() === absolute)).toHaveLength(1)
  })

  test('a mocked answer is an answer', async () => {
    const mock = new undici.MockAgent()
    mock.disableNetConnect()
    mock
      .get('http://api.internal')
      .intercept({ path: '/', headers: { 'x-own': 'a' } })
      .reply(200, 'mocked')
    const dispatcher = mock.compose(deadlineInterceptor())
    await underDeadline(2_000, async (deadline) => {
      const { body } = await undici.request('http://api.internal/', { dispatcher, headers: { 'x-own': 'a' } })
      expect(await body.text()).toBe('mocked')
      expect(onlyEntry(deadline).outcome).toBe('ok')
    })
    await mock.close()
  })

  test("undici's own limits stay below the budget", async () => {
    await using upstream = await slowUpstream({ delay: 2_500 })
    await using governed = govern(undici, {}, { headersTimeout: 300 })
    const deadline = Deadline.after(5_000)
    const failure = await underDeadline(
      5_000,
      () => failureOf(undici.request(upstream.url, { dispatcher: governed.agent })),
      {
        parent: deadline,
      },
    )
    expect(codesOf(failure)).toEqual(['UPSTREAM_ERROR', 'UND_ERR_HEADERS_TIMEOUT'])
  })

  test.runIf(version === 7)('interceptors that look names up and keep answers work below ours', async () => {
    const seen: IncomingMessage[] = []
    await using server = await noting(seen, () => ({
      status: 200,
      headers: { 'cache-control': 'max-age=60' },
    }))
    const agent = new undici.Agent()
    const dispatcher = agent.compose(
      undici.interceptors.dns(),
      undici.interceptors.cache(),
      deadlineInterceptor(),
    )
    const url = server.url.replace('127.0.0.1', 'localhost')
    await underDeadline(2_000, async (deadline) => {
      for (let call = 0; call < 2; call += 1) {
        const { body } = await undici.request(url, { dispatcher, headers: { 'x-own': 'a' } })
        expect(await body.text()).toBe('done')
      }
      expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
    })
    expect(seen).toHaveLength(1)
    expect(seen[0]?.headers).toMatchObject({ 'x-own': 'a', [absolute]: expect.stringMatching(/^\d{13}$/) })
    await agent.destroy()
  })
})
