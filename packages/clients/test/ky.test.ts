import ky from 'ky'
import { expect, test } from 'vitest'
import { ClientClosedError, currentDeadline, findTimeBudgetError } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import { attachDeadline } from '../src/ky.ts'
import { causesOf, codesOf, failureOf, onlyEntry, pause, underDeadline, until } from './support/calls.ts'
import { deadUrl, serveHttp } from './support/servers.ts'

const relative = 'x-request-timeout-ms'
const absolute = 'x-request-deadline'
const api = attachDeadline(ky)
const hourly = { limit: 3, delay: () => 3_600_000 }
const brisk = { limit: 9, delay: () => 60 }

test('each attempt is an operation and goes out with what is left by then', async () => {
  const left: number[] = []
  await using server = await serveHttp((request, response) => {
    left.push(Number(request.headers[relative]))
    response.writeHead(left.length < 3 ? 503 : 200).end('done')
  })
  await underDeadline(5_000, async (deadline) => {
    expect(await api(server.url, { retry: brisk }).text()).toBe('done')
    expect(deadline.ledger.entries).toMatchObject([
      { path: 'ky', outcome: 'upstream_error' },
      { path: 'ky', outcome: 'upstream_error' },
      { path: 'ky', outcome: 'ok' },
    ])
  })
  expect(left[1]).toBeLessThanOrEqual((left[0] ?? 0) - 55)
  expect(left[2]).toBeLessThanOrEqual((left[1] ?? 0) - 55)
})

test('the deadline bounds all attempts together, not each', async () => {
  await using upstream = await slowUpstream()
  await underDeadline(500, async (deadline) => {
    const failure = await failureOf(
      api(upstream.url, { timeout: 150, retry: { ...brisk, delay: () => 0, retryOnTimeout: true } }),
    )
    expect(failure).toBe(deadline.reason)
    expect(deadline.elapsed()).toBeLessThan(700)
  })
  expect(upstream.requests.length).toBeGreaterThan(1)
  for (const { abandoned } of upstream.requests) expect(await abandoned).toBe(true)
})

test('an own timeout bounds all attempts together too', async () => {
  let requests = 0
  await using server = await serveHttp((_request, response) => {
    requests += 1
    response.writeHead(503).end()
  })
  await underDeadline(5_000, async (deadline) => {
    const begun = performance.now()
    const failure = await failureOf(
      attachDeadline(ky, { timeout: 250 })(server.url, { retry: { ...brisk, jitter: (delay) => delay } }),
    )
    expect(performance.now() - begun).toBeLessThan(500)
    expect(codesOf(failure)).toContain('OPERATION_TIMEOUT')
    expect(deadline.reason).toBeUndefined()
  })
  expect(requests).toBeGreaterThan(1)
})

test('a pause between attempts ends when the client leaves, and nothing comes after it', async () => {
  await using server = await serveHttp((_request, response) => response.writeHead(503).end())
  let retries = 0
  const hooks = { beforeRetry: [() => void (retries += 1)] }
  await underDeadline(5_000, async (deadline) => {
    const failed = failureOf(api(server.url, { hooks, retry: { limit: 3, delay: () => 500 } }))
    await until(() => deadline.ledger.entries[0]?.outcome !== undefined)
    deadline.cancel(new ClientClosedError('the client went away'))
    const left = performance.now()
    expect(codesOf(await failed)).toContain('CLIENT_CLOSED')
    expect(performance.now() - left).toBeLessThan(100)
    await pause(600)
  })
  expect(retries).toBe(0)
  expect(server.connections).toBe(1)
})

test.each([
  { when: 'the peer demands a longer pause', answer: { 'retry-after': '3600' }, retry: {} },
  { when: 'the own pause is longer', answer: {}, retry: hourly },
  {
    when: 'the peer has had all the time there is',
    answer: { 'x-deadline-outcome': 'deadline_exceeded' },
    retry: {},
  },
])(
  'a retry is not waited for if $when: the call fails at once with what it failed of',
  async ({ answer, retry }) => {
    let requests = 0
    await using server = await serveHttp((_request, response) => {
      requests += 1
      response.writeHead(503, answer).end('{"busy":true}')
    })
    await underDeadline(3_000, async (deadline) => {
      const failure = await failureOf(api(server.url, { retry }))
      expect(deadline.elapsed()).toBeLessThan(1_000)
      expect(failure).toMatchObject({ name: 'HTTPError', response: { status: 503 } })
      const { response, data } = failure as { response: Response; data?: unknown }
      expect(data ?? (await response.json())).toEqual({ busy: true }) // ky 2 has read it by itself
    })
    expect(requests).toBe(1)
  },
)

test('a retry needs the floor after its pause', async () => {
  let requests = 0
  await using server = await serveHttp((_request, response) => {
    requests += 1
    response.writeHead(503).end()
  })
  await underDeadline(1_500, async (deadline) => {
    const failure = await failureOf(
      attachDeadline(ky, { floor: 1_000 })(server.url, { retry: { limit: 3, delay: () => 700 } }),
    )
    expect(failure).toMatchObject({ name: 'HTTPError' })
    await until(() => onlyEntry(deadline).outcome !== undefined)
    expect(onlyEntry(deadline)).toMatchObject({ outcome: 'upstream_error', floor: 1_000 })
  })
  expect(requests).toBe(1)
})

test('retries that the instance or the call has set up are kept as they are', async () => {
  let requests = 0
  await using server = await serveHttp((_request, response) => {
    requests += 1
    response.writeHead(418).end()
  })
  const delay = (): number => 5
  const of = async (instance: typeof ky, init = {}): Promise<number> => {
    requests = 0
    await underDeadline(5_000, () => failureOf(attachDeadline(instance)(server.url, init)))
    return requests
  }
  expect(await of(ky)).toBe(1)
  expect(await of(ky.extend({ retry: { limit: 3, statusCodes: [418], delay } }))).toBe(4)
  expect(await of(ky, { retry: { limit: 2, statusCodes: [418], delay } })).toBe(3)
  expect(await of(ky.extend({ retry: { statusCodes: [418], delay } }), { retry: { limit: 1 } })).toBe(2)
  expect(await of(ky.extend({ retry: 1 }), { retry: { statusCodes: [418], delay } })).toBe(2)
  expect(
    await of(ky.extend({ retry: { limit: 3, statusCodes: [418], delay, shouldRetry: () => false } })),
  ).toBe(1)
  let hooked = 0
  const hooks = { beforeRetry: [() => void (hooked += 1)] }
  expect(await of(ky.extend({ hooks }), { hooks, retry: { limit: 1, statusCodes: [418], delay } })).toBe(2)
  expect(hooked).toBe(2)
})

test('what is refused is not tried again', async () => {
  await using server = await serveHttp((_request, response) => response.end())
  await underDeadline(500, async (deadline) => {
    const failure = await failureOf(attachDeadline(ky, { floor: 600 })(server.url, { retry: brisk }).json())
    expect(failure).toMatchObject({ code: 'BUDGET_TOO_SMALL' })
    expect(deadline.elapsed()).toBeLessThan(300)
    expect(onlyEntry(deadline).outcome).toBe('short_circuited')
  })
  expect(server.connections).toBe(0)
})

test("what fails by itself is retried as ever, and keeps fetch's error with ours among its causes", async () => {
  const url = await deadUrl()
  await underDeadline(5_000, async (deadline) => {
    const failure = await failureOf(api(url, { retry: { limit: 2, delay: () => 5 } }))
    expect(failure).toMatchObject({ name: expect.stringMatching(/^(TypeError|NetworkError)$/) })
    expect(codesOf(failure)).toEqual(expect.arrayContaining(['UPSTREAM_ERROR', 'ECONNREFUSED']))
    expect(findTimeBudgetError(failure)).toMatchObject({ code: 'UPSTREAM_ERROR', operation: 'ky' })
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(Array(3).fill('upstream_error'))
  })
})

test("a longer budget is not cut by ky's default of ten seconds, and a timeout that was set counts", async () => {
  const timeouts: unknown[] = []
  await using upstream = await slowUpstream()
  const watched = attachDeadline(ky).extend({
    retry: 0,
    hooks: {
      beforeRequest: [(_request, options) => void timeouts.push((options as { timeout?: unknown }).timeout)],
    },
  })
  await underDeadline(200, () => failureOf(watched(upstream.url)))
  await underDeadline(200, () => failureOf(watched.extend({ timeout: 10_000 })(upstream.url)))
  await underDeadline(Infinity, async (deadline) => {
    const failed = failureOf(watched(upstream.url))
    setTimeout(() => deadline.cancel(), 100)
    await failed
  })
  expect(timeouts).toEqual([false, 10_000, 10_000])
})

test("ky's own timeout ends an attempt with ky's own error, and is sent as well", async () => {
  await using upstream = await slowUpstream()
  await underDeadline(5_000, async (deadline) => {
    const failure = await failureOf(api(upstream.url, { timeout: 120, retry: 0 }))
    expect(failure).toMatchObject({ name: 'TimeoutError' })
    await until(() => onlyEntry(deadline).outcome !== undefined)
    expect(onlyEntry(deadline).outcome).toBe('operation_timeout')
  })
  expect(Number((await upstream.nextRequest()).headers[relative])).toBeLessThanOrEqual(120)
})

test.each(['json', 'text', 'arrayBuffer'] as const)(
  '%s() settles by the deadline, and nothing is left to handle',
  async (shortcut) => {
    await using upstream = await slowUpstream({ startsAtOnce: true })
    await underDeadline(150, async (deadline) => {
      expect(causesOf(await failureOf(api(upstream.url)[shortcut]()))).toContain(deadline.reason)
      expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
    })
    expect(await (await upstream.nextRequest()).abandoned).toBe(true)
  },
)

test('a hook that hangs costs no more than what is left', async () => {
  await using server = await serveHttp((_request, response) => response.end())
  let release = (): void => undefined
  const hanging = api.extend({
    hooks: { beforeRequest: [() => new Promise<void>((resolve) => (release = resolve))] },
  })
  await underDeadline(150, async (deadline) => {
    expect(await failureOf(hanging(server.url))).toBe(deadline.reason)
  })
  release()
  await pause(50)
  expect(server.connections).toBe(0)
})

test("an error's body that nobody reads holds neither the operation nor the connection", async () => {
  await using server = await serveHttp((_request, response) =>
    response.writeHead(500).end('x'.repeat(10_000)),
  )
  await underDeadline(5_000, async (deadline) => {
    const failure = await failureOf(api.post(server.url, { json: { q: 1 } }))
    expect(failure).toMatchObject({ name: 'HTTPError' })
    await until(() => onlyEntry(deadline).outcome !== undefined)
    expect(onlyEntry(deadline).outcome).toBe('upstream_error')
    expect(deadline.remaining()).toBeGreaterThan(2_000)
  })
})

test('a body that the caller aborts after its headers is cut off with its own reason', async () => {
  await using upstream = await slowUpstream({ startsAtOnce: true })
  await underDeadline(5_000, async (deadline) => {
    const [controller, reason] = [new AbortController(), new Error('changed my mind')]
    const response = await api(upstream.url, { signal: controller.signal })
    const failed = failureOf(response.text())
    controller.abort(reason)
    expect(causesOf(await failed)).toContain(reason)
    expect(onlyEntry(deadline).outcome).toBe('cancelled')
  })
})

test('a signal of the instance still counts', async () => {
  await using upstream = await slowUpstream()
  const [controller, reason] = [new AbortController(), new Error('closing')]
  const closing = attachDeadline(ky.extend({ signal: controller.signal, retry: 0 }))
  await underDeadline(5_000, async () => {
    const failed = failureOf(closing(upstream.url))
    const request = await upstream.nextRequest()
    controller.abort(reason)
    expect(causesOf(await failed)).toContain(reason)
    expect(await request.abandoned).toBe(true)
  })
})

test('methods and extended instances are governed; what is created afresh is not', async () => {
  const seen: Array<[string | undefined, boolean]> = []
  await using server = await serveHttp((request, response) => {
    seen.push([request.method, request.headers[absolute] !== undefined])
    response.end()
  })
  const url = new URL('/search', server.url)
  await underDeadline(5_000, async () => {
    for (const method of ['get', 'post', 'put', 'patch', 'head', 'delete'] as const) await api[method](url)
    await api
      .extend({})
      .extend((parent) => parent)
      .get(url)
    await api.create().get(url)
  })
  expect(seen).toEqual([
    ...['GET', 'POST', 'PUT', 'PATCH', 'HEAD', 'DELETE', 'GET'].map((method) => [method, true]),
    ['GET', false],
  ])
  expect(api.stop).toBe(ky.stop)
  expect(currentDeadline()).toBeUndefined()
})

test('a body is sent again with a redirect and with a retry', async () => {
  const bodies: string[] = []
  await using server = await serveHttp(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    bodies.push(`${request.url} ${Buffer.concat(chunks).toString()}`)
    if (request.url === '/') response.writeHead(307, { location: '/moved' }).end()
    else response.writeHead(bodies.length < 4 ? 503 : 200).end('done')
  })
  await underDeadline(5_000, async () => {
    expect(await api.put(server.url, { json: { q: 1 }, retry: brisk }).text()).toBe('done')
  })
  expect(bodies).toEqual(['/ {"q":1}', '/moved {"q":1}', '/ {"q":1}', '/moved {"q":1}'])
})

test('options that cannot be read are reported at once', async () => {
  expect(() => attachDeadline(ky, { emit: ['x-soon' as never] })).toThrow(TypeError)
  await underDeadline(500, () => {
    expect(() => api('/no-base')).toThrow(TypeError)
  })
})
