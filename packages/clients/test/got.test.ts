import { once } from 'node:events'
import { createSecureServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { Writable } from 'node:stream'
import got, { type Response, RequestError, type Request, TimeoutError } from 'got'
import { expect, test } from 'vitest'
import { ClientClosedError, currentDeadline, findTimeBudgetError } from '@timebudget/core'
import { slowUpstream } from '@timebudget/core/testing'
import { deadlineHooks } from '../src/got.ts'
import { causesOf, codesOf, failureOf, onlyEntry, pause, underDeadline } from './support/calls.ts'
import { textOf } from './support/got-calls.ts'
import { selfSigned } from './support/self-signed.ts'
import { deadUrl, serveHttp } from './support/servers.ts'

const relative = 'x-request-timeout-ms'
const absolute = 'x-request-deadline'
const governed = got.extend(deadlineHooks())

test('each retry goes out with what is left by then, and the deadline it stands under', async () => {
  const seen: Array<{ readonly left: number; readonly moment: string | undefined }> = []
  await using server = await serveHttp((request, response) => {
    seen.push({ left: Number(request.headers[relative]), moment: request.headers[absolute]?.toString() })
    response.writeHead(seen.length < 3 ? 503 : 200).end('done')
  })
  await underDeadline(5_000, async (deadline) => {
    const text = await governed(server.url, {
      retry: { calculateDelay: ({ computedValue }) => computedValue && 100 },
    }).text()
    expect(text).toBe('done')
    expect(onlyEntry(deadline)).toMatchObject({ name: 'got', outcome: 'ok' })
  })
  expect(seen).toHaveLength(3)
  expect(seen[1]?.left).toBeLessThanOrEqual((seen[0]?.left ?? 0) - 95)
  expect(seen[2]?.left).toBeLessThanOrEqual((seen[1]?.left ?? 0) - 95)
  expect(new Set(seen.map(({ moment }) => moment)).size).toBe(1)
})

test('the deadline bounds all attempts together, not each', async () => {
  await using upstream = await slowUpstream()
  await underDeadline(500, async (deadline) => {
    const failure = await failureOf(
      governed(upstream.url, { timeout: { request: 150 }, retry: { calculateDelay: () => 1 } }),
    )
    expect(failure).toBe(deadline.reason)
    expect(deadline.elapsed()).toBeLessThan(700)
  })
  expect(upstream.requests.length).toBeGreaterThan(1)
  expect(await (await upstream.nextRequest()).abandoned).toBe(true)
})

test('a pause between attempts ends with the deadline', async () => {
  await using server = await serveHttp((_request, response) => response.writeHead(503).end())
  await underDeadline(5_000, async (deadline) => {
    const cut = governed.extend(deadlineHooks({ timeout: 5_000 }))
    const failed = failureOf(cut(server.url, { retry: { calculateDelay: () => 4_000 } }))
    await pause(200)
    deadline.cancel(new ClientClosedError('the client went away'))
    const left = performance.now()
    expect(codesOf(await failed)).toContain('CLIENT_CLOSED')
    expect(performance.now() - left).toBeLessThan(100)
  })
  expect(server.connections).toBe(1)
})

test('a retry that could not finish any more is not waited for: the call fails at once with what it failed of', async () => {
  await using server = await serveHttp((_request, response) => {
    response.writeHead(429, { 'retry-after': '3600' }).end()
  })
  const begun = performance.now()
  await underDeadline(3_000, async (deadline) => {
    const failure = await failureOf(governed(server.url))
    expect(failure).toMatchObject({ name: 'HTTPError', response: { statusCode: 429 } })
    expect(onlyEntry(deadline).outcome).toBe('ok')
  })
  expect(performance.now() - begun).toBeLessThan(1_000)
})

test('a retry needs its pause and the floor', async () => {
  let requests = 0
  await using server = await serveHttp((_request, response) => {
    requests += 1
    response.writeHead(503).end()
  })
  const careful = got.extend(deadlineHooks({ floor: 1_000 }))
  await underDeadline(1_500, async (deadline) => {
    const failure = await failureOf(careful(server.url, { retry: { calculateDelay: () => 700 } }))
    expect(failure).toMatchObject({ name: 'HTTPError', response: { statusCode: 503 } })
    expect(onlyEntry(deadline)).toMatchObject({ outcome: 'upstream_error', floor: 1_000 })
  })
  expect(requests).toBe(1)
})

test('a peer that had all the time there is gets no second try', async () => {
  let requests = 0
  await using server = await serveHttp((_request, response) => {
    requests += 1
    response.writeHead(504, { 'x-deadline-outcome': 'deadline_exceeded' }).end()
  })
  await underDeadline(5_000, async (deadline) => {
    const failure = await failureOf(governed(server.url))
    expect(failure).toMatchObject({ name: 'HTTPError', response: { statusCode: 504 } })
    expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
  })
  expect(requests).toBe(1)
})

test('each redirect goes out with what is left by then, to those whom propagateTo allows', async () => {
  const seen: Array<Record<string, unknown>> = []
  await using last = await serveHttp((request, response) => {
    seen.push(request.headers)
    response.end('arrived')
  })
  await using middle = await serveHttp((request, response) => {
    seen.push(request.headers)
    setTimeout(() => response.writeHead(302, { location: last.url }).end(), 120)
  })
  await using first = await serveHttp((request, response) => {
    seen.push(request.headers)
    setTimeout(() => response.writeHead(307, { location: middle.url }).end(), 120)
  })
  const picky = got.extend(deadlineHooks({ propagateTo: [first.host, last.host] }))
  await underDeadline(5_000, async (deadline) => {
    expect(await picky(first.url).text()).toBe('arrived')
    expect(onlyEntry(deadline).outcome).toBe('ok')
  })
  expect(seen.map((headers) => headers[absolute] !== undefined)).toEqual([true, false, true])
  expect(Number(seen[2]?.[relative])).toBeLessThanOrEqual(Number(seen[0]?.[relative]) - 230)
})

test('a redirect that hangs is cut off', async () => {
  await using upstream = await slowUpstream()
  await using server = await serveHttp((_request, response) =>
    response.writeHead(302, { location: upstream.url }).end(),
  )
  await underDeadline(200, async (deadline) => {
    expect(await failureOf(governed(server.url))).toBe(deadline.reason)
  })
  expect(await (await upstream.nextRequest()).abandoned).toBe(true)
})

test.each(['json', 'text', 'buffer'] as const)(
  '%s() settles by the deadline, and nothing is left to handle',
  async (shortcut) => {
    await using upstream = await slowUpstream({ startsAtOnce: true })
    await underDeadline(150, async (deadline) => {
      expect(await failureOf(governed(upstream.url)[shortcut]())).toBe(deadline.reason)
    })
    // below the floor too; what is not handled fails the run
    const picky = got.extend(deadlineHooks({ floor: '1s' }))
    await underDeadline(150, async () => {
      expect(await failureOf(picky(upstream.url)[shortcut]())).toMatchObject({ code: 'BUDGET_TOO_SMALL' })
    })
  },
)

test('json() asks for JSON, reads it, and fails with got’s own error if it is none', async () => {
  await using server = await serveHttp((request, response) => {
    response.end(request.url === '/json' ? JSON.stringify({ accept: request.headers.accept }) : 'no JSON')
  })
  await underDeadline(2_000, async () => {
    expect(await governed(`${server.url}json`).json()).toEqual({ accept: 'application/json' })
    expect(await failureOf(governed(server.url).json())).toMatchObject({ name: 'ParseError' })
  })
})

test('cancel() still cancels, and is no failure of the upstream', async () => {
  await using upstream = await slowUpstream()
  await underDeadline(5_000, async (deadline) => {
    const promise = governed(upstream.url)
    const failed = failureOf(promise)
    const request = await upstream.nextRequest()
    promise.cancel()
    expect(promise.isCanceled).toBe(true)
    expect(await failed).toMatchObject({ name: 'CancelError', isCanceled: true })
    expect(await request.abandoned).toBe(true)
    expect(onlyEntry(deadline).outcome).toBe('cancelled')
  })
})

test("the caller's own signal fails the call as it always did, with the caller's reason as the cause", async () => {
  await using upstream = await slowUpstream()
  await underDeadline(5_000, async () => {
    const [controller, reason] = [new AbortController(), new Error('changed my mind')]
    const failed = failureOf(governed(upstream.url, { signal: controller.signal }))
    await upstream.nextRequest()
    controller.abort(reason)
    expect(await failed).toMatchObject({ name: 'AbortError', code: 'ERR_ABORTED', cause: reason })
  })
})

test("got's own timeout counts while it is shorter, and fails the call with got's own error", async () => {
  await using upstream = await slowUpstream()
  await underDeadline(5_000, async (deadline) => {
    const failure = await failureOf(
      governed(upstream.url, { timeout: { response: 120 }, retry: { limit: 0 } }),
    )
    expect(failure).toBeInstanceOf(TimeoutError)
    expect(onlyEntry(deadline).outcome).toBe('operation_timeout')
  })
})

test("what fails by itself keeps got's error, with ours among its causes", async () => {
  const url = await deadUrl()
  await underDeadline(5_000, async (deadline) => {
    const failure = await failureOf(governed(url, { retry: { limit: 0 } }))
    expect(failure).toBeInstanceOf(RequestError)
    expect(failure).toMatchObject({ code: 'ECONNREFUSED' })
    expect(findTimeBudgetError(failure)).toMatchObject({ code: 'UPSTREAM_ERROR', operation: 'got' })
    expect(onlyEntry(deadline).outcome).toBe('upstream_error')
  })
})

test('what a hook throws is no failure of the upstream', async () => {
  const failing = governed.extend({
    hooks: {
      beforeRequest: [
        () => {
          throw new Error('no token')
        },
      ],
    },
  })
  await underDeadline(5_000, async (deadline) => {
    expect(await failureOf(failing('http://127.0.0.1:1/'))).toMatchObject({
      name: 'RequestError',
      message: 'no token',
    })
    expect(onlyEntry(deadline).outcome).toBe('error')
  })
})

test('a hook that hangs costs no more than what is left, and nothing is sent after it', async () => {
  await using server = await serveHttp((_request, response) => response.end())
  let release = (): void => undefined
  const hanging = governed.extend({
    hooks: { beforeRequest: [() => new Promise((resolve) => (release = () => resolve(undefined)))] },
  })
  await underDeadline(150, async (deadline) => {
    expect(await failureOf(hanging(server.url))).toBe(deadline.reason)
  })
  release()
  await pause(50)
  expect(server.connections).toBe(0)
})

test('hooks run under the deadline of the call', async () => {
  await using server = await serveHttp((_request, response) => response.end())
  const left: Array<number | undefined> = []
  const watched = got.extend(deadlineHooks({ timeout: 400 }), {
    hooks: { beforeRequest: [() => void left.push(currentDeadline()?.remaining())] },
  })
  await underDeadline(5_000, () => watched(server.url))
  expect(left[0]).toBeLessThanOrEqual(400)
})

test('instances that are extended twice have one operation within the other', async () => {
  await using upstream = await slowUpstream()
  const outer = got.extend(deadlineHooks({ operation: 'outer', timeout: 150 }))
  const inner = outer.extend(deadlineHooks({ operation: 'inner', timeout: '10s' }))
  await underDeadline(5_000, async (deadline) => {
    expect(await failureOf(inner(upstream.url).text())).toMatchObject({
      code: 'OPERATION_TIMEOUT',
      operation: 'outer',
    })
    expect(deadline.ledger.entries.map(({ path }) => path)).toEqual(['outer', 'outer.inner'])
  })
  expect(Number((await upstream.nextRequest()).headers[relative])).toBeLessThanOrEqual(150)
})

test('every page of a pagination is a call of its own, and none is begun after the deadline', async () => {
  const left: number[] = []
  await using server = await serveHttp((request, response) => {
    left.push(Number(request.headers[relative]))
    setTimeout(() => response.end(JSON.stringify([left.length])), 60)
  })
  await underDeadline(400, async (deadline) => {
    const pages: unknown[] = []
    const failure = await failureOf(
      (async () => {
        const all = governed.paginate<number>(server.url, {
          responseType: 'json',
          pagination: {
            transform: (response: Response<unknown>) => response.body as number[],
            // the options of the page before, which got allows as well
            paginate: ({ response }) => response.request.options,
          },
        })
        for await (const page of all) pages.push(page)
      })(),
    )
    expect(failure).toBe(deadline.reason)
    expect(pages.length).toBeGreaterThan(1)
    expect(deadline.ledger.entries.length).toBeGreaterThanOrEqual(pages.length)
  })
  expect(left.every((remaining, index) => index === 0 || remaining < (left[index - 1] ?? 0))).toBe(true)
})

test('options that a call has used up carry no stale deadline into a call without one', async () => {
  const seen: unknown[] = []
  await using server = await serveHttp((request, response) => {
    seen.push(request.headers[absolute])
    response.end()
  })
  const used = await underDeadline(2_000, () => governed(server.url))
  await governed(undefined, undefined, used.request.options)
  expect(seen).toEqual([expect.stringMatching(/^\d{13}$/), undefined])
})

test('nor does the deadline of that call decide about retries of a later one', async () => {
  let requests = 0
  await using server = await serveHttp((_request, response) => {
    requests += 1
    response.writeHead(requests === 2 ? 503 : 200).end()
  })
  const brief = got.extend(deadlineHooks({ timeout: 100 }), {
    retry: { calculateDelay: ({ computedValue }) => computedValue && 1 },
  })
  const used = await underDeadline(2_000, () => brief(server.url))
  await pause(100)
  await underDeadline(2_000, () => brief(undefined, undefined, used.request.options))
  expect(requests).toBe(3)
})

test('a stream that is not read any further ends with the deadline', async () => {
  await using server = await serveHttp((_request, response) => {
    response.write(Buffer.alloc(4_000_000))
    response.write('more')
  })
  await underDeadline(200, async (deadline) => {
    const stuck = new Writable({ highWaterMark: 1, write: () => undefined })
    const failure = await failureOf(pipeline(governed.stream(server.url), stuck))
    expect(failure).toMatchObject({ name: 'RequestError', code: 'DEADLINE_EXCEEDED', cause: deadline.reason })
    expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
  })
})

test('a stream that its reader destroys was cancelled', async () => {
  await using upstream = await slowUpstream({ startsAtOnce: true })
  await underDeadline(5_000, async (deadline) => {
    const stream = governed.stream(upstream.url)
    await once(stream, 'response')
    stream.destroy()
    await once(stream, 'close')
    expect(onlyEntry(deadline).outcome).toBe('cancelled')
    expect(await (await upstream.nextRequest()).abandoned).toBe(true)
  })
})

test('a stream that is retried stays under the one deadline, the pauses included', async () => {
  let requests = 0
  const left: number[] = []
  await using server = await serveHttp((request, response) => {
    requests += 1
    left.push(Number(request.headers[relative]))
    if (requests < 3) response.writeHead(503).end()
    else response.write('begun')
  })
  const retrying = governed.extend({
    retry: { calculateDelay: ({ attemptCount }) => (attemptCount < 5 ? 60 : 0) },
  })
  await underDeadline(700, async (deadline) => {
    const failed = new Promise<unknown>((resolve) => {
      const follow = (stream: Request): void => {
        stream.on('error', resolve)
        stream.resume()
        stream.once('retry', (_count, _error, createRetryStream) => follow(createRetryStream()))
      }
      follow(retrying.stream(server.url))
    })
    const failure = await failed
    expect(causesOf(failure)).toContain(deadline.reason)
    expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
    expect(deadline.elapsed()).toBeLessThan(900)
  })
  expect(requests).toBe(3)
  expect(left[2]).toBeLessThan((left[0] ?? 0) - 110)
})

test('an error of a stream that nobody listens to is still thrown', async () => {
  const url = await deadUrl()
  const stream = await underDeadline(1_000, () => governed.stream(url, { retry: { limit: 0 } }))
  expect(stream.listenerCount('error')).toBe(0)
  const failure = await failureOf(textOf(stream))
  expect(findTimeBudgetError(failure)).toMatchObject({ code: 'UPSTREAM_ERROR' })
})

test('an answer out of a cache says nothing of this call', async () => {
  await using server = await serveHttp((_request, response) => {
    response.writeHead(200, { 'server-timing': 'retrieve;dur=12', 'cache-control': 'max-age=60' }).end('done')
  })
  const cache = new Map()
  await underDeadline(2_000, async (deadline) => {
    await governed(server.url, { cache })
    expect(deadline.ledger.entries).toHaveLength(2)
  })
  await underDeadline(2_000, async (deadline) => {
    expect((await governed(server.url, { cache })).isFromCache).toBe(true)
    expect(onlyEntry(deadline).outcome).toBe('ok')
  })
})

test('options that got cannot read are reported by got', async () => {
  await underDeadline(1_000, async () => {
    expect(
      await failureOf(governed('http://127.0.0.1/', { timeout: { request: 'soon' as unknown as number } })),
    ).toMatchObject({
      name: 'RequestError',
    })
    expect(await failureOf(governed('not a url'))).toMatchObject({ code: 'ERR_INVALID_URL' })
  })
  expect(() => deadlineHooks({ emit: ['x-soon' as never] })).toThrow(TypeError)
})

test('with HTTP/2 the stream of the call ends, and the next call works', async () => {
  const seen: Array<{ readonly left: number; readonly closed: Promise<unknown> }> = []
  const server = createSecureServer({ ...selfSigned }, () => undefined)
  const sessions: ServerHttp2Session[] = []
  server.on('session', (session) => sessions.push(session))
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined)
    seen.push({ left: Number(headers[relative]), closed: once(stream, 'close') })
    if (headers[':path'] === '/fast') stream.end('done')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `https://localhost:${(server.address() as AddressInfo).port}/`
  const overHttp2 = governed.extend({
    http2: true,
    dnsLookupIpVersion: 4,
    https: { rejectUnauthorized: false },
  })
  await underDeadline(400, async (deadline) => {
    expect(await overHttp2(`${url}fast`).text()).toBe('done')
    expect(await failureOf(overHttp2(url))).toBe(deadline.reason)
  })
  await seen[1]?.closed
  expect(seen[1]?.left).toBeLessThanOrEqual(400)
  await underDeadline(2_000, async () => expect(await overHttp2(`${url}fast`).text()).toBe('done'))
  for (const session of sessions) session.destroy()
  server.close()
})
