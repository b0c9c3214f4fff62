import { type Clock, Deadline, type RequestFinished, requestFinished, systemClock } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { slowUpstream } from '@timebudget/core/testing'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { Agent, fetch as undiciFetch, interceptors, request as undiciRequest } from 'undici'
import { expect, test } from 'vitest'
import { retry, RetryBudget, retryEndOf } from '../src/index.ts'
import { failureOf, serve, until } from './support/retrying.ts'

const quickly = { backoff: { initial: 5 }, budget: null } as const

const slowly = { backoff: { initial: 50 }, random: () => 1, budget: null } as const

/** The process's clock, and how many of its timers are pending. */
function watchedClock(): Clock & { readonly pending: number } {
  const pending = new Set<object>()
  return {
    now: () => systemClock.now(),
    epoch: () => systemClock.epoch(),
    wakeAfter(delay, wake) {
      const timer = systemClock.wakeAfter(delay, () => {
        pending.delete(timer)
        wake()
      })
      pending.add(timer)
      return {
        hold: () => timer.hold(),
        release: () => timer.release(),
        cancel() {
          pending.delete(timer)
          timer.cancel()
        },
      }
    },
    get pending() {
      return pending.size
    },
  }
}

/** A port on which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function droppingServer(): Promise<{ server: Server; port: number; connections: () => number }> {
  let connections = 0
  const server = createTcpServer((socket) => {
    connections += 1
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port, connections: () => connections }
}

test('a 503 is asked for again, its body let go of, and the good answer is whole', async () => {
  await using server = await serve((response, hit) => {
    response.writeHead(hit < 3 ? 503 : 200)
    // more than any buffer holds: unread, it would keep its connection for ever
    response.end(hit < 3 ? Buffer.alloc(4_000_000) : 'done')
  })
  const response = await retry(({ signal }) => fetch(server.url, { signal }), quickly)
  expect(await response.text()).toBe('done')
  expect(server.hits).toHaveLength(3)
  await until(() => server.open.size <= 1)
})

test.each([
  ["undici's fetch", undiciFetch],
  ["undici's request", undiciRequest],
])(
  'a failing answer of %s that is short is read, so that its connection serves the next attempt',
  async (_, call) => {
    await using server = await serve((response, hit) => response.writeHead(hit < 3 ? 503 : 200).end('short'))
    const dispatcher = new Agent()
    await retry(({ signal }): Promise<unknown> => call(server.url, { signal, dispatcher }), slowly)
    expect(server.hits).toHaveLength(3)
    expect(new Set(server.hits.map(({ socket }) => socket)).size).toBe(1)
    await dispatcher.destroy()
  },
)

test.each([
  ["undici's fetch", undiciFetch],
  ["undici's request", undiciRequest],
])('a failing answer of %s that is long is not read to its end: its connection closes', async (_, call) => {
  await using server = await serve((response) => {
    response.writeHead(503)
    response.write(Buffer.alloc(1_000_000)) // and never ends
  })
  const controller = new AbortController()
  const dispatcher = new Agent()
  const failed = failureOf(
    retry(({ signal }): Promise<unknown> => call(server.url, { signal, dispatcher }), {
      ...slowly,
      backoff: { initial: '1h', max: '1h' },
      signal: controller.signal,
    }),
  )
  await until(() => server.hits.length === 1 && server.open.size === 0)
  controller.abort()
  await failed
  await dispatcher.destroy()
})

test('the last of several failing answers is given back with its body', async () => {
  await using server = await serve((response, hit) => response.writeHead(503).end(`no ${hit}`))
  const response = await retry(({ signal }) => fetch(server.url, { signal }), quickly)
  expect([response.status, await response.text()]).toEqual([503, 'no 3'])
})

test('a 404 is an answer like any other', async () => {
  await using server = await serve((response) => response.writeHead(404).end())
  expect((await retry(({ signal }) => fetch(server.url, { signal }), quickly)).status).toBe(404)
  expect(server.hits).toHaveLength(1)
})

test('an abort ends a wait that the server asked for at once, and no timer is left', async () => {
  await using server = await serve((response) => response.writeHead(429, { 'retry-after': '3' }).end())
  const controller = new AbortController()
  const clock = watchedClock()
  const startedAt = performance.now()
  const failed = failureOf(
    retry(({ signal }) => fetch(server.url, { signal }), { ...quickly, clock, signal: controller.signal }),
  )
  await until(() => clock.pending > 0)
  setTimeout(() => controller.abort(), 100 - (performance.now() - startedAt))
  await once(controller.signal, 'abort')
  const abortedAt = performance.now()
  expect(await failed).toMatchObject({ code: 'CANCELLED' })
  expect(performance.now() - abortedAt).toBeLessThan(50)
  expect(server.hits).toHaveLength(1)
  expect(clock.pending).toBe(0)
})

test("so it does where undici's own retry interceptor would sleep on", async () => {
  await using server = await serve((response) => response.writeHead(429, { 'retry-after': '1' }).end())
  const agent = new Agent()
  const dispatcher = agent.compose(interceptors.retry({ minTimeout: 1_000, maxTimeout: 1_000 }))
  const controller = new AbortController()
  const failed = failureOf(
    retry(({ signal }) => undiciFetch(server.url, { signal, dispatcher }), {
      ...quickly,
      signal: controller.signal,
    }),
  )
  await until(() => server.hits.length > 0)
  const abortedAt = performance.now()
  controller.abort('stop')
  expect(await failed).toMatchObject({ code: 'CANCELLED' })
  expect(performance.now() - abortedAt).toBeLessThan(150)
  await new Promise((resolve) => setTimeout(resolve, 1_200))
  expect(server.hits).toHaveLength(1)
  await agent.destroy()
})

test('through a plain undici dispatcher with an interceptor the server decides how long is waited', async () => {
  await using server = await serve((response, hit) => {
    if (hit === 1) response.writeHead(503, { 'retry-after-ms': '80' }).end('no')
    else response.end('done')
  })
  const agent = new Agent()
  const dispatcher = agent.compose(interceptors.redirect({ maxRedirections: 2 }))
  const startedAt = performance.now()
  const response = await retry(({ signal }) => undiciFetch(server.url, { signal, dispatcher }), quickly)
  expect(await response.text()).toBe('done')
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(80)
  await agent.close()
})

test("what undici's request answers is understood, and its body let go of", async () => {
  await using server = await serve((response, hit) => {
    response.writeHead(hit === 1 ? 503 : 200).end(hit === 1 ? Buffer.alloc(4_000_000) : 'done')
  })
  const dispatcher = new Agent()
  const { body } = await retry(({ signal }) => undiciRequest(server.url, { signal, dispatcher }), quickly)
  expect(await body.text()).toBe('done')
  expect(server.hits).toHaveLength(2)
  await dispatcher.close()
})

test.each([
  ['fetch', fetch],
  ['undici', undiciFetch],
])(
  'a refused connection of %s was not sent: it is tried again also where that would be harmful',
  async (_, call) => {
    const port = await closedPort()
    const options = { ...quickly, idempotent: false }
    const error = await failureOf(
      retry(({ signal }) => call(`http://127.0.0.1:${port}/`, { signal }), options),
    )
    expect(retryEndOf(error)).toEqual({ stop: 'no_attempts', attempts: 3 })
    expect(error).toMatchObject({ message: 'fetch failed', cause: { code: 'ECONNREFUSED' } })
  },
)

test.each([
  ['fetch', fetch],
  ['undici', undiciFetch],
])('a connection of %s that breaks may have carried the request', async (_, call) => {
  await using server = await serve((response) => response.destroy())
  const options = { ...quickly, idempotent: false }
  const post = { method: 'POST', body: 'pay' }
  const error = await failureOf(retry(({ signal }) => call(server.url, { ...post, signal }), options))
  expect(retryEndOf(error)).toEqual({ stop: 'already_sent', attempts: 1 })
  const again = await failureOf(retry(({ signal }) => call(server.url, { ...post, signal }), quickly))
  expect(retryEndOf(again)).toEqual({ stop: 'no_attempts', attempts: 3 })
  expect(server.hits).toHaveLength(4)
})

test('a TLS handshake that breaks off has carried nothing', async () => {
  const { server, port, connections } = await droppingServer()
  const options = { ...quickly, idempotent: false }
  const error = await failureOf(
    retry(({ signal }) => fetch(`https://127.0.0.1:${port}/`, { signal }), options),
  )
  expect(retryEndOf(error)).toEqual({ stop: 'no_attempts', attempts: 3 })
  expect(connections()).toBe(3)
  server.close()
})

test('a name that does not resolve is looked up again', async () => {
  const error = await failureOf(
    retry(() => fetch('http://no-such-host.invalid/'), { ...quickly, idempotent: false }),
  )
  expect(retryEndOf(error)).toMatchObject({ attempts: 3 })
})

test('limits of undici are timeouts', async () => {
  await using upstream = await slowUpstream()
  const dispatcher = new Agent({ headersTimeout: 50 })
  const error = await failureOf(
    retry(({ signal }) => undiciFetch(upstream.url, { signal, dispatcher }), { ...quickly, attempts: 2 }),
  )
  expect(retryEndOf(error)).toEqual({ stop: 'no_attempts', attempts: 2 })
  await dispatcher.destroy()
})

test('a silent server costs no more than the deadline, and each attempt closes its connection', async () => {
  await using upstream = await slowUpstream()
  const deadline = Deadline.after(300)
  const startedAt = performance.now()
  const error = await failureOf(
    retry(({ signal }) => fetch(upstream.url, { signal }), {
      ...quickly,
      deadline,
      timeout: 200,
      floor: 50,
    }),
  )
  const elapsed = performance.now() - startedAt
  expect(error).toMatchObject({ code: expect.stringMatching(/DEADLINE_EXCEEDED|BUDGET_TOO_SMALL/) })
  expect(elapsed).toBeLessThan(400)
  for (const request of upstream.requests) expect(await request.abandoned).toBe(true)
})

test('when the primary hangs the fallback still answers within the deadline', async () => {
  await using primary = await slowUpstream()
  await using fallback = await slowUpstream({ delay: 20, body: 'from the cache' })
  const deadline = Deadline.after(800)
  const hanging = await failureOf(
    retry(({ signal }) => fetch(primary.url, { signal }), { ...quickly, deadline, reserve: 400 }),
  )
  expect(hanging).toMatchObject({ code: 'BUDGET_TOO_SMALL', cause: { code: 'OPERATION_TIMEOUT' } })
  const answer = await fetch(fallback.url, { signal: deadline.signal })
  expect(await answer.text()).toBe('from the cache')
  expect(deadline.expired).toBe(false)
})

test('clients that disconnect cause no second call', async () => {
  await using upstream = await slowUpstream()
  const finished: RequestFinished[] = []
  const unsubscribe = requestFinished.subscribe((event) => finished.push(event))
  const handler = withDeadline(
    async (_request, response) => {
      const answer = await retry(({ signal }) => fetch(upstream.url, { signal }), quickly)
      response.end(await answer.text())
    },
    { default: '20s' },
  )
  const front = createServer((request, response) => {
    Promise.resolve(handler(request, response)).catch(() => undefined)
  }).listen(0, '127.0.0.1')
  await once(front, 'listening')
  const url = `http://127.0.0.1:${(front.address() as AddressInfo).port}/`
  const shapes = [
    (controller: AbortController) => controller.abort(),
    (controller: AbortController) => controller.abort('stop'),
    (controller: AbortController) => controller.abort(new DOMException('stop', 'AbortError')),
  ]
  for (let user = 0; user < 50; user += 1) {
    const controller = new AbortController()
    const { signal } = controller
    const asking = fetch(url, { signal }).catch(() => undefined)
    await upstream.nextRequest()
    shapes[user % shapes.length]?.(controller)
    await asking
  }
  // and one that just drops its connection
  const dropped = get(url).on('error', () => undefined)
  await upstream.nextRequest()
  dropped.destroy()
  await until(() => finished.length === 51)
  unsubscribe()
  expect(new Set(finished.map(({ outcome }) => outcome))).toEqual(new Set(['client_closed']))
  expect(new Set(finished.map(({ deadline }) => deadline.ledger.entries[0]?.outcome))).toEqual(
    new Set(['client_closed']),
  )
  expect(upstream.requests).toHaveLength(51)
  front.closeAllConnections()
  front.close()
})

test('in an outage a thousand requests with four attempts each make at most 1,300 calls', async () => {
  await using server = await serve((response) => response.writeHead(503).end())
  const budget = new RetryBudget({ ratio: 0.2 })
  const dispatcher = new Agent({ connections: 50 })
  const startedAt = performance.now()
  let asked = 0
  const user = async (): Promise<void> => {
    while (asked < 1_000) {
      asked += 1
      const { statusCode, body } = await retry(
        ({ signal }) => undiciRequest(server.url, { signal, dispatcher }),
        {
          attempts: 4,
          backoff: { initial: 2 },
          budget,
          deadline: Deadline.after('20s'),
        },
      )
      expect(statusCode).toBe(503)
      await body.dump()
    }
  }
  await Promise.all(Array.from({ length: 50 }, user))
  expect(server.hits.length).toBeGreaterThan(1_000)
  // on a machine that needs longer than the window of ten seconds the reserve of 100 is there once more
  const windows = Math.ceil((performance.now() - startedAt) / 9_000)
  expect(server.hits.length).toBeLessThanOrEqual(1_200 + 100 * windows)
  await dispatcher.destroy()
}, 60_000)

test('without a word about it a budget for the whole process is in force', async () => {
  await using server = await serve((response) => response.writeHead(503).end())
  const ask = (): Promise<Response> =>
    retry(({ signal }) => fetch(server.url, { signal }), {
      operation: 'default budget',
      attempts: 4,
      backoff: { initial: 0 },
    })
  for (let call = 0; call < 60; call += 1) await (await ask()).body?.cancel()
  // 60 first attempts, 100 of the reserve, 12 for the ratio
  expect(server.hits.length).toBeLessThanOrEqual(172)
  expect(server.hits.length).toBeGreaterThanOrEqual(160)
})
