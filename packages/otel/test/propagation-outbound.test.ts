import http from 'node:http'
import { context } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { suppressTracing } from '@opentelemetry/core'
import {
  Deadline,
  deadlineSent,
  type DeadlineSent,
  detach,
  requestStarted,
  runWithDeadline,
} from '@timebudget/core'
import { Agent, type Dispatcher, interceptors, Pool, request, RetryAgent, stream } from 'undici'
import { afterAll, describe, expect, test } from 'vitest'
import { Writable } from 'node:stream'
import { DeadlinePropagator, isPrivateHost } from '../src/index.ts'
import { recordingServer, type RecordingServer } from './recording-server.ts'

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
afterAll(() => context.disable())

const bothHeaders = ['x-request-timeout-ms', 'x-request-deadline']

function get(url: string, options: http.RequestOptions = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    http
      .get(url, options, (response) => response.resume().on('end', resolve).on('error', reject))
      .on('error', reject)
  })
}

const calls: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  'global fetch': async (url) => (await fetch(url)).text(),
  'undici.request': async (url) => (await request(url)).body.text(),
  'undici.stream': (url) =>
    stream(url, { method: 'GET' }, () => new Writable({ write: (_chunk, _encoding, done) => done() })),
  'node:http': (url) => get(url),
}

function remainingOn(server: RecordingServer, path: string): number {
  const [value, ...more] = server.values(path, 'x-request-timeout-ms')
  expect(more).toEqual([])
  return Number(value)
}

describe.each(Object.entries(calls))('%s', (_name, call) => {
  test('carries what is left, once, to the hosts it is told to, whoever is registered twice', async () => {
    await using server = await recordingServer()
    using _propagator = new DeadlinePropagator({ inject: isPrivateHost })
    using _another = new DeadlinePropagator({ inject: true })
    const deadline = Deadline.after(4_000)
    await runWithDeadline(deadline, () => call(`${server.url}/called`))
    expect(remainingOn(server, '/called')).toBeGreaterThan(2_000)
    expect(remainingOn(server, '/called')).toBeLessThanOrEqual(4_000)
    expect(server.values('/called', 'x-request-deadline')).toEqual([String(deadline.expiresAt)])
  })

  test('carries nothing unless asked to, to other hosts, without a deadline, detached, or once stopped', async () => {
    await using server = await recordingServer()
    const under = <T>(work: () => T): T => runWithDeadline(Deadline.after(4_000), work)
    {
      using _unasked = new DeadlinePropagator()
      await under(() => call(`${server.url}/unasked`))
    }
    {
      using _elsewhere = new DeadlinePropagator({ inject: ['*.internal', '127.0.0.1:1'] })
      await under(() => call(`${server.url}/elsewhere`))
    }
    const stopped = new DeadlinePropagator({ inject: true })
    await call(`${server.url}/free`)
    await under(() => detach(() => call(`${server.url}/background`)))
    expect(requestStarted.observed).toBe(true)
    stopped.stop()
    expect(requestStarted.observed).toBe(false)
    await under(() => call(`${server.url}/stopped`))
    expect(server.paths).toHaveLength(5)
    for (const path of server.paths)
      for (const header of bothHeaders) expect([path, server.values(path, header)]).toEqual([path, []])
  })

  test('carries nothing of what telemetry itself sends', async () => {
    await using server = await recordingServer()
    using _propagator = new DeadlinePropagator({ inject: true })
    await runWithDeadline(Deadline.after(4_000), () =>
      context.with(suppressTracing(context.active()), () => call(`${server.url}/export`)),
    )
    expect(server.values('/export', 'x-request-timeout-ms')).toEqual([])
    expect(server.values('/export', 'baggage')).toEqual([])
  })

  test('tells a peer of a deadline that has ended that there is no time', async () => {
    await using server = await recordingServer()
    using _propagator = new DeadlinePropagator({ inject: true })
    const cancelled = Deadline.after('1h')
    cancelled.cancel()
    await runWithDeadline(cancelled, () => call(`${server.url}/ended`))
    expect(remainingOn(server, '/ended')).toBe(1)
    expect(Number(server.values('/ended', 'x-request-deadline')[0])).toBeLessThanOrEqual(Date.now())
    await runWithDeadline(Deadline.after(Infinity), () => call(`${server.url}/endless`))
    expect(server.values('/endless', 'x-request-timeout-ms')).toEqual([])
  })

  test('is not hurt by a rule that throws', async () => {
    await using server = await recordingServer()
    using _propagator = new DeadlinePropagator({
      inject: () => {
        throw new Error('broken rule')
      },
    })
    await runWithDeadline(Deadline.after(4_000), () => call(`${server.url}/`))
    expect(server.values('/', 'x-request-timeout-ms')).toEqual([])
  })

  test('says that the deadline was sent', async () => {
    await using server = await recordingServer()
    using _propagator = new DeadlinePropagator({ inject: true })
    const heard: DeadlineSent[] = []
    const unsubscribe = deadlineSent.subscribe((event) => void heard.push(event))
    const deadline = Deadline.after(4_000)
    await runWithDeadline(deadline, () => call(`${server.url}/`))
    unsubscribe()
    expect(heard).toEqual([{ deadline, host: `127.0.0.1:${server.port}`, sent: true }])
  })
})

test('a header that is there already stays the only one', async () => {
  await using server = await recordingServer()
  using _propagator = new DeadlinePropagator({ inject: true })
  const headers = { 'X-Request-Timeout-Ms': '77' }
  await runWithDeadline(Deadline.after(4_000), async () => {
    await fetch(`${server.url}/fetch`, { headers })
    await (await request(`${server.url}/undici`, { headers })).body.dump()
    await get(`${server.url}/http`, { headers })
  })
  for (const path of server.paths) {
    expect(server.values(path, 'x-request-timeout-ms')).toEqual(['77'])
    expect(server.values(path, 'x-request-deadline')).toEqual([])
  }
})

test('a redirect to another host carries nothing there, and what is left by then where it may', async () => {
  await using stranger = await recordingServer()
  await using server = await recordingServer((incoming, response) => {
    const to = incoming.url === '/away' ? `http://localhost:${stranger.port}/away` : '/on'
    if (incoming.url === '/on') response.end()
    else setTimeout(() => response.writeHead(302, { location: to }).end(), 50)
  })
  using _propagator = new DeadlinePropagator({ inject: ['127.0.0.1'], trust: ['127.0.0.1'] })
  await runWithDeadline(Deadline.after(4_000), async () => {
    await (await fetch(`${server.url}/away`)).text()
    await (await fetch(`${server.url}/stay`)).text()
  })
  expect(remainingOn(server, '/away')).toBeLessThanOrEqual(4_000)
  expect(server.values('/away', 'baggage')).toHaveLength(1)
  for (const header of [...bothHeaders, 'baggage']) expect(stranger.values('/away', header)).toEqual([])
  expect(remainingOn(server, '/on')).toBeLessThanOrEqual(remainingOn(server, '/stay') - 40)
})

test('a proxy gets what the host behind it may get', async () => {
  await using proxy = await recordingServer()
  using _propagator = new DeadlinePropagator({ inject: ['127.0.0.1', 'a.internal'] })
  const ask = (path: string): Promise<void> => get(proxy.url, { path })
  await runWithDeadline(Deadline.after(4_000), async () => {
    await ask('http://a.internal/x')
    await ask('http://stranger.example/x')
  })
  expect(proxy.values('http://a.internal/x', 'x-request-timeout-ms')).toHaveLength(1)
  expect(proxy.values('http://stranger.example/x', 'x-request-timeout-ms')).toEqual([])
  expect(proxy.values('http://stranger.example/x', 'baggage')).toEqual([])
})

test('a request that waits before it is sent says what is left when it is', async () => {
  await using server = await recordingServer(
    (_request, response) => void setTimeout(() => response.end(), 150),
  )
  using _propagator = new DeadlinePropagator({ inject: true })
  const pool = new Agent({ connections: 1 })
  await runWithDeadline(Deadline.after(4_000), async () => {
    const waiting = ['/first', '/second'].map((path) => request(server.url + path, { dispatcher: pool }))
    for (const response of await Promise.all(waiting)) await response.body.dump()
    await new Promise<void>((resolve, reject) => {
      const post = http.request(`${server.url}/slow-upload`, { method: 'POST' }, (response) => {
        response.resume().on('end', resolve)
      })
      post.on('error', reject)
      setTimeout(() => post.end('body'), 100)
    })
  })
  expect(remainingOn(server, '/second')).toBeLessThanOrEqual(remainingOn(server, '/first') - 140)
  expect(remainingOn(server, '/slow-upload')).toBeLessThanOrEqual(remainingOn(server, '/second') - 240)
  await pool.close()
})

test("nothing is sent of somebody else's deadline, where undici makes a request in somebody else's context", async () => {
  let failures = 0
  await using server = await recordingServer((incoming, response) => {
    const { url = '' } = incoming
    if (url.startsWith('/redirected')) response.writeHead(302, { location: '/target' }).end()
    else if (url === '/failing' && failures++ === 0) response.writeHead(503).end()
    else setTimeout(() => response.end(), 50)
  })
  using _propagator = new DeadlinePropagator({ inject: true })
  const pool = new Pool(server.url, { connections: 1 })
  const under = (path: string, budget: number): Promise<void> =>
    runWithDeadline(Deadline.after(budget), async () => {
      await (await pool.request({ path, method: 'GET' })).body.dump()
    })
  await Promise.all([under('/long', 60_000), under('/short', 900), under('/long-again', 60_000)])
  expect(remainingOn(server, '/long')).toBeGreaterThan(50_000)
  for (const path of ['/short', '/long-again'])
    for (const header of [...bothHeaders, 'baggage']) expect(server.values(path, header)).toEqual([])

  const agent = new Agent({ connections: 1 })
  const via = (path: string, budget: number, dispatcher: Dispatcher): Promise<void> =>
    runWithDeadline(Deadline.after(budget), async () => {
      await (await request(server.url + path, { dispatcher })).body.dump()
    })
  await via('/opens', 60_000, agent)
  const redirecting = agent.compose(interceptors.redirect({ maxRedirections: 1 }))
  await via('/redirected', 900, redirecting)
  expect(remainingOn(server, '/redirected')).toBeLessThanOrEqual(900)
  expect(server.values('/target', 'x-request-timeout-ms')).toEqual([])
  await via('/failing', 900, new RetryAgent(agent, { minTimeout: 1 }))
  expect(server.attempts('/failing', 'x-request-timeout-ms')).toEqual([[expect.anything()], []])
  await pool.close()
  await agent.close()
})

test('other headers are written if they are asked for', async () => {
  await using server = await recordingServer()
  using _propagator = new DeadlinePropagator({ inject: true, emit: ['grpc-timeout'] })
  await runWithDeadline(Deadline.after(4_000), () => fetch(`${server.url}/`))
  expect(server.values('/', 'grpc-timeout')[0]).toMatch(/^\d+u$/)
  expect(server.values('/', 'x-request-timeout-ms')).toEqual([])
})
