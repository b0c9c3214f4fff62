import axios, { AxiosError, type AxiosInstance, CanceledError } from 'axios'
import axiosRetry from 'axios-retry'
import { getEventListeners } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import type { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { Deadline } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import { attachDeadline } from '../src/axios.ts'
import { causesOf, codesOf, failureOf, onlyEntry, pause, underDeadline } from './support/calls.ts'
import { deadUrl, serveHttp, serveRaw, type TestServer } from './support/servers.ts'

const absolute = 'x-request-deadline'
const relative = 'x-request-timeout-ms'
const adapters = ['http', 'fetch'] as const

function attached(options: Parameters<typeof attachDeadline>[1] = {}, defaults: object = {}): AxiosInstance {
  const instance = axios.create({ proxy: false, ...defaults })
  attachDeadline(instance, options)
  return instance
}

/** Redirects `/from` to a URL with this status, after a while; answers all else with what it was asked. */
function redirecting(status: number, to: () => string, seen: IncomingMessage[] = []): Promise<TestServer> {
  return serveHttp((request, response) => {
    seen.push(request)
    if (request.url === '/from') setTimeout(() => response.writeHead(status, { location: to() }).end(), 150)
    else {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () =>
        response.end(JSON.stringify({ method: request.method, body: String(Buffer.concat(parts)) })),
      )
    }
  })
}

test.each(adapters)('by the %s adapter a body that is collected is cut when it stalls', async (adapter) => {
  await using upstream = await slowUpstream({ startsAtOnce: true })
  await underDeadline(200, async (deadline) => {
    const failure = await failureOf(attached({}, { adapter }).get(upstream.url))
    expect(failure).toBe(deadline.reason)
    expect(axios.isAxiosError(failure)).toBe(false)
    expect(await (await upstream.nextRequest()).abandoned).toBe(true)
  })
})

test.each(adapters)('by the %s adapter a redirect carries what is left by then', async (adapter) => {
  const seen: IncomingMessage[] = []
  await using server = await redirecting(307, () => '/to', seen)
  await underDeadline(5_000, async (deadline) => {
    const answer = await attached({}, { adapter }).post(`${server.url}from`, { question: 1 })
    expect(answer.data).toEqual({ method: 'POST', body: '{"question":1}' })
    const [first, second] = seen.map(({ headers }) => Number(headers[relative]))
    expect(second).toBeLessThanOrEqual((first ?? 0) - 140)
    expect(seen[1]?.rawHeaders.filter((name) => name.toLowerCase() === relative)).toHaveLength(1)
    expect(onlyEntry(deadline)).toMatchObject({ name: 'axios', outcome: 'ok' })
  })
})

test.each(adapters)('by the %s adapter each host of a redirect is judged anew', async (adapter) => {
  const seen: IncomingMessage[] = []
  await using stranger = await redirecting(302, () => '/', seen)
  await using server = await redirecting(302, () => `${stranger.url.replace('127.0.0.1', 'localhost')}to`)
  await underDeadline(5_000, async () => {
    await attached({ propagateTo: ['127.0.0.1'] }, { adapter }).get(`${server.url}from`)
    await attached({ propagateTo: ['localhost'] }, { adapter }).get(`${server.url}from`)
  })
  expect(seen.map(({ headers }) => headers[absolute] !== undefined)).toEqual([false, true])
})

test("the caller's own beforeRedirect is called, and may choose where to go", async () => {
  const seen: string[] = []
  await using server = await redirecting(302, () => '/to')
  const instance = attached({}, { beforeRedirect: (options: { href: string }) => seen.push(options.href) })
  await underDeadline(5_000, () => instance.get(`${server.url}from`))
  expect(seen).toEqual([`${server.url}to`])
})

test('without redirects a redirect is the answer', async () => {
  await using server = await redirecting(302, () => '/to')
  await underDeadline(5_000, async () => {
    const asked = attached({}, { maxRedirects: 0 }).get(`${server.url}from`, { validateStatus: () => true })
    expect((await asked).status).toBe(302)
  })
})

test('a plugin that sends a config again sends what is left by then', async () => {
  await using server = await serveHttp((_request, response) => response.writeHead(503).end())
  const sent: number[] = []
  await using counting = await serveHttp((request, response) => {
    sent.push(Number(request.headers[relative]))
    response.writeHead(sent.length < 3 ? 503 : 200).end('done')
  })
  const instance = attached()
  axiosRetry(instance, { retries: 2, retryDelay: () => 100 })
  await underDeadline(5_000, async (deadline) => {
    expect((await instance.get(counting.url)).data).toBe('done')
    expect(sent[1]).toBeLessThanOrEqual((sent[0] ?? 0) - 90)
    expect(sent[2]).toBeLessThanOrEqual((sent[1] ?? 0) - 90)
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual([
      'upstream_error',
      'upstream_error',
      'ok',
    ])
    expect(axios.isAxiosError(await failureOf(instance.get(server.url)))).toBe(true)
  })
})

test('a plugin that retries whatever fails does not retry what the deadline has ended', async () => {
  await using upstream = await slowUpstream()
  const instance = attached()
  axiosRetry(instance, { retries: 5, retryCondition: () => true })
  await underDeadline(150, async (deadline) => {
    expect(await failureOf(instance.get(upstream.url))).toBe(deadline.reason)
    expect(deadline.elapsed()).toBeLessThan(500)
    await pause(100)
  })
  expect(upstream.requests).toHaveLength(1)
})

test('a config that is sent again without any deadline carries none', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  const instance = attached()
  const { config } = await underDeadline(2_000, () => instance.get(upstream.url))
  await instance.request(config)
  expect(upstream.requests.map(({ headers }) => headers[absolute] === undefined)).toEqual([false, true])
})

test.each(adapters)(
  'by the %s adapter a status that counts as a failure stays the AxiosError it is',
  async (adapter) => {
    await using server = await serveHttp((request, response) => {
      response
        .writeHead(Number(request.url?.slice(1)), { 'content-type': 'application/json' })
        .end('{"why":"busy"}')
    })
    const instance = attached({}, { adapter })
    await underDeadline(5_000, async (deadline) => {
      for (const status of [404, 500]) {
        const failure = await failureOf(instance.get(`${server.url}${status}`))
        expect(failure).toBeInstanceOf(AxiosError)
        expect(failure).toMatchObject({
          status,
          response: { status, data: { why: 'busy' } },
          config: { adapter },
        })
        expect(causesOf(failure)).toHaveLength(1)
      }
      expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['ok', 'upstream_error'])
    })
  },
)

test('a failure of the network stays the AxiosError it is, with ours among its causes', async () => {
  const url = await deadUrl()
  await underDeadline(5_000, async () => {
    const failure = await failureOf(attached().get(url))
    expect(failure).toMatchObject({
      isAxiosError: true,
      code: 'ECONNREFUSED',
      config: { url, adapter: expect.any(Array) },
    })
    expect(codesOf(failure)).toEqual(['ECONNREFUSED', 'UPSTREAM_ERROR', 'ECONNREFUSED'])
  })
})

test.each(adapters)(
  "by the %s adapter axios's own timeout and ways to cancel work as ever",
  async (adapter) => {
    await using upstream = await slowUpstream()
    const instance = attached({}, { adapter })
    const controller = new AbortController()
    const { token, cancel } = axios.CancelToken.source()
    setTimeout(() => controller.abort(), 60)
    setTimeout(() => cancel('enough'), 60)
    await underDeadline(5_000, async (deadline) => {
      const [timedOut, aborted, cancelled] = await Promise.all([
        failureOf(instance.get(upstream.url, { timeout: 60 })),
        failureOf(instance.get(upstream.url, { signal: controller.signal })),
        failureOf(instance.get(upstream.url, { cancelToken: token })),
      ])
      expect(timedOut).toMatchObject({ isAxiosError: true, message: 'timeout of 60ms exceeded' })
      expect(timedOut).toMatchObject({ code: adapter === 'http' ? 'ECONNABORTED' : 'ETIMEDOUT' })
      expect(aborted).toBeInstanceOf(CanceledError)
      expect(axios.isCancel(cancelled)).toBe(true)
      const outcomes = deadline.ledger.entries.map(({ outcome }) => outcome)
      expect(outcomes).toEqual(['operation_timeout', 'cancelled', 'cancelled'])
      expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
      for (const request of upstream.requests) expect(await request.abandoned).toBe(true)
    })
  },
)

test('a zipped stream is unzipped, and cut like any other', async () => {
  const zipped = gzipSync('x'.repeat(100_000))
  await using server = await serveRaw((socket, head) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${zipped.length}\r\n\r\n`)
    socket.write(head.startsWith('GET /stall') ? zipped.subarray(0, 20) : zipped)
  })
  const instance = attached({}, { responseType: 'stream' })
  await underDeadline(2_000, async () => {
    const { data } = await instance.get<Readable>(server.url)
    expect(Buffer.concat(await data.toArray())).toHaveLength(100_000)
  })
  await underDeadline(150, async (deadline) => {
    const { data } = await instance.get<Readable>(`${server.url}stall`)
    expect(await failureOf(data.toArray())).toBe(deadline.reason)
  })
})

test.each(adapters)('by the %s adapter a stream that its reader leaves is cancelled', async (adapter) => {
  await using upstream = await slowUpstream({ startsAtOnce: true })
  await underDeadline(5_000, async (deadline) => {
    const { data } = await attached({}, { adapter }).get<AsyncIterable<Uint8Array>>(upstream.url, {
      responseType: 'stream',
    })
    for await (const chunk of data) {
      expect(String(Buffer.from(chunk))).toBe('begun ')
      break
    }
    expect(await (await upstream.nextRequest()).abandoned).toBe(true)
    expect(onlyEntry(deadline).outcome).toBe('cancelled')
  })
})

test('an adapter of the user is governed too, and needs no signal to be left behind', async () => {
  const instance = attached({}, { adapter: () => new Promise(() => undefined) })
  await underDeadline(100, async (deadline) => {
    expect(await failureOf(instance.get('http://127.0.0.1/'))).toBe(deadline.reason)
  })
})

test('what a plugin gets to see is the config that it knows, its signal and its adapter included', async () => {
  await using server = await serveHttp((request, response) => {
    response.writeHead(Number(request.url?.slice(1))).end('{}')
  })
  const instance = attached()
  const { adapter } = instance.defaults
  const { signal } = Deadline.after(2_000)
  const response = await instance.get(`${server.url}200`, { signal })
  expect(response.config).toMatchObject({ adapter })
  expect(response.config.signal).toBe(signal)
  const failure = await failureOf(instance.get(`${server.url}404`, { signal }))
  expect(failure).toMatchObject({ config: { adapter }, response: { config: { adapter } } })
  expect((failure as AxiosError).config?.signal).toBe(signal)
})

test('without a deadline and a timeout the adapter is the one that was there', async () => {
  const seen: unknown[] = []
  const instance = attached()
  instance.interceptors.request.use((config) => {
    seen.push(config.adapter)
    return config
  })
  const adapter: NonNullable<AxiosInstance['defaults']['adapter']> = (config) => {
    seen.push(config.adapter)
    return Promise.resolve({ data: '', status: 200, statusText: '', headers: {}, config })
  }
  await instance.get('/', { adapter })
  expect(seen).toEqual([adapter, adapter])
})

test('detached, an instance is as it was; attached twice, it writes and counts once', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  const instance = axios.create({ proxy: false })
  const detachers = [attachDeadline(instance), attachDeadline(instance)]
  await underDeadline(2_000, async (deadline) => {
    await instance.get(upstream.url)
    expect(onlyEntry(deadline).outcome).toBe('ok')
    for (const detach of detachers) detach()
    await instance.get(upstream.url)
    expect(deadline.ledger.entries).toHaveLength(1)
  })
  expect(upstream.requests.map(({ headers }) => headers[relative] !== undefined)).toEqual([true, false])
})

test('the other interceptors stay synchronous, and one that fails leaves nothing running', async () => {
  const instance = attached()
  const order: string[] = []
  instance.interceptors.request.use((config) => (order.push('interceptor'), config), undefined, {
    synchronous: true,
  })
  const refused = new Error('no token')
  await underDeadline(2_000, async (deadline) => {
    const url = await deadUrl()
    const failed = failureOf(instance.get(url))
    order.push('after the call')
    await failed
    instance.interceptors.request.use(() => Promise.reject(refused))
    expect(await failureOf(instance.get(url))).toBe(refused)
    expect(deadline.ledger.entries).toHaveLength(1)
  })
  expect(order.slice(0, 2)).toEqual(['interceptor', 'after the call'])
})

test("errors are those of the instance's own copy of axios", async () => {
  const required = createRequire(import.meta.url)('axios') as typeof axios
  expect(required.AxiosError).not.toBe(AxiosError)
  const instance = required.create({ proxy: false })
  attachDeadline(instance)
  const url = await deadUrl()
  await underDeadline(2_000, async () => {
    expect(await failureOf(instance.get(url))).toBeInstanceOf(required.AxiosError)
  })
})

test("the call's name may come of its URL and method, however axios is told of them", async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  const instance = attached({ operation: ({ url, method }) => `${method} ${url.pathname}${url.search}` })
  await underDeadline(2_000, async (deadline) => {
    await instance.post('search', undefined, { baseURL: upstream.url, params: { q: 'x' } })
    expect(onlyEntry(deadline).name).toBe('POST /search?q=x')
  })
})
