import { getEventListeners } from 'node:events'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { Agent, Request as Request7, fetch as fetch7, setGlobalDispatcher, getGlobalDispatcher } from 'undici'
import type { Deadline } from '@timebudget/core'
import { ManualClock, slowUpstream } from '@timebudget/core/testing'
import { type Fetch, fetch, wrapFetch } from '../src/fetch.ts'
import { causesOf, codesOf, failureOf, onlyEntry, pause, underDeadline, until } from './support/calls.ts'
import { deferred } from './support/deferred.ts'
import { through } from './support/fetches.ts'
import { serveHttp, serveRaw } from './support/servers.ts'

/** Runs under a deadline that is far away. */
const inTime = <T>(work: Parameters<typeof underDeadline<T>>[1]): Promise<T> => underDeadline(10_000, work)

test('the body is read in every way, once', async () => {
  await using server = await serveHttp((request, response) => {
    const type = request.url === '/form' ? 'application/x-www-form-urlencoded' : 'application/json'
    response.writeHead(200, { 'content-type': type }).end(request.url === '/form' ? 'a=1' : '{"a":1}')
  })
  await inTime(async (deadline) => {
    expect(await (await fetch(server.url)).json()).toEqual({ a: 1 })
    expect(await (await fetch(server.url)).text()).toBe('{"a":1}')
    expect((await (await fetch(server.url)).arrayBuffer()).byteLength).toBe(7)
    expect((await (await fetch(server.url)).blob()).type).toBe('application/json')
    expect((await (await fetch(`${server.url}form`)).formData()).get('a')).toBe('1')
    const response = await fetch(server.url)
    expect(response.bodyUsed).toBe(false)
    await response.text()
    expect(response.bodyUsed).toBe(true)
    expect(await failureOf(response.text())).toBeInstanceOf(TypeError)
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(Array(6).fill('ok'))
  })
})

test('the body is iterated, and read into memory of the reader', async () => {
  await using server = await serveHttp((_request, response) => {
    response.write('begun ')
    setTimeout(() => response.end('done'), 20)
  })
  await inTime(async (deadline) => {
    const chunks: string[] = []
    const { body } = await fetch(server.url)
    for await (const chunk of body ?? []) chunks.push(Buffer.from(chunk).toString())
    expect(chunks.join('')).toBe('begun done')

    const reader = (await fetch(server.url)).body?.getReader({ mode: 'byob' })
    let read = ''
    for (let memory = new Uint8Array(4); ;) {
      const part = await reader?.read(memory)
      if (part === undefined || part.done) break
      read += Buffer.from(part.value).toString()
      memory = new Uint8Array(part.value.buffer)
    }
    expect(read).toBe('begun done')
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
  })
})

test('a clone reads the same, and both are cut off', async () => {
  await using server = await serveHttp((_request, response) => response.end('done'))
  await using stalled = await slowUpstream({ startsAtOnce: true })
  await inTime(async () => {
    const response = await fetch(server.url)
    const clone = response.clone()
    expect([clone.url, clone.status]).toEqual([response.url, 200])
    expect(await Promise.all([response.text(), clone.text()])).toEqual(['done', 'done'])
  })
  await underDeadline(150, async () => {
    const response = await fetch(stalled.url)
    const clone = response.clone()
    const failures = await Promise.all([failureOf(response.text()), failureOf(clone.text())])
    expect(failures.flatMap(codesOf)).toEqual(['DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED'])
  })
})

test('a response is what it would be without us', async () => {
  await using server = await serveHttp((_request, response) => {
    response.writeHead(203, 'Not Quite', [
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['x-own', 'kept'],
      ['content-encoding', 'gzip'],
    ])
    response.end(gzipSync('unpacked'))
  })
  const bare = await globalThis.fetch(server.url)
  await inTime(async () => {
    const response = await fetch(server.url)
    expect(response).toBeInstanceOf(Response)
    for (const key of ['status', 'statusText', 'ok', 'url', 'type', 'redirected'] as const) {
      expect([key, response[key]]).toEqual([key, bare[key]])
    }
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    const comparable = ({ headers }: Response): unknown => [...headers].filter(([name]) => name !== 'date')
    expect(comparable(response)).toEqual(comparable(bare))
    expect(await response.text()).toBe('unpacked')
  })
})

test.each([
  { what: 'a 204', method: 'GET', head: 'HTTP/1.1 204 No Content\r\n\r\n' },
  { what: 'a 304', method: 'GET', head: 'HTTP/1.1 304 Not Modified\r\n\r\n' },
  { what: 'an answer to HEAD', method: 'HEAD', head: 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n' },
])('$what ends with its headers', async ({ method, head }) => {
  await using server = await serveRaw((socket) => socket.write(head))
  await inTime(async (deadline) => {
    const response = await fetch(server.url, { method })
    expect(response.body).toBeNull()
    expect(onlyEntry(deadline).outcome).toBe('ok')
    expect(await response.text()).toBe('')
  })
})

test('a status and a reason that Response itself would refuse pass', async () => {
  await using server = await serveRaw((socket) =>
    socket.end('HTTP/1.1 999 D\xe9nied\r\ncontent-length: 2\r\n\r\nno', 'latin1'),
  )
  const bare = await globalThis.fetch(server.url)
  await inTime(async () => {
    const response = await fetch(server.url)
    expect([response.status, response.statusText]).toEqual([bare.status, bare.statusText])
    expect(response.ok).toBe(false)
    expect(await response.text()).toBe('no')
  })
})

test('cancelling the body closes the connection and ends the operation', async () => {
  await using upstream = await slowUpstream({ startsAtOnce: true })
  await inTime(async (deadline) => {
    const response = await fetch(upstream.url)
    await response.body?.cancel()
    expect(await (await upstream.nextRequest()).abandoned).toBe(true)
    expect(onlyEntry(deadline).outcome).toBe('cancelled')
  })
})

test('leaving a loop over the body closes the connection', async () => {
  await using upstream = await slowUpstream({ startsAtOnce: true })
  await inTime(async (deadline) => {
    const { body } = await fetch(upstream.url)
    for await (const _ of body ?? []) break
    expect(await (await upstream.nextRequest()).abandoned).toBe(true)
    expect(onlyEntry(deadline).outcome).toBe('cancelled')
  })
})

test('an upstream that answers and then trickles for ever is cut off at the deadline', async () => {
  await using server = await serveHttp((_request, response) => {
    const trickle = setInterval(() => response.write('.'), 20)
    response.once('close', () => clearInterval(trickle))
  })
  await underDeadline(300, async (deadline) => {
    const response = await fetch(server.url)
    let received = ''
    const failure = await failureOf(
      (async () => {
        for await (const chunk of response.body ?? []) received += Buffer.from(chunk).toString()
      })(),
    )
    expect(failure).toBe(deadline.reason)
    expect(received.length).toBeGreaterThan(2)
    expect(deadline.elapsed()).toBeLessThan(500)
  })
})

test("the caller's own reason comes back as it is, before the headers and in the body", async () => {
  for (const startsAtOnce of [false, true]) {
    await using upstream = await slowUpstream({ startsAtOnce })
    for (const reason of [new Error('changed my mind'), 'stop', new DOMException('enough', 'AbortError')]) {
      await inTime(async () => {
        const controller = new AbortController()
        const failed = failureOf(
          fetch(upstream.url, { signal: controller.signal }).then((response) => response.text()),
        )
        await upstream.nextRequest()
        await pause(20)
        controller.abort(reason)
        expect(await failed).toBe(reason)
        expect(getEventListeners(controller.signal, 'abort')).toEqual([])
      })
    }
  }
})

test('no call leaves a listener on a signal that many share', async () => {
  await using upstream = await slowUpstream({ delay: 0 })
  const { signal } = new AbortController()
  await inTime(async () => {
    await Promise.all(Array.from({ length: 100 }, async () => (await fetch(upstream.url, { signal })).text()))
  })
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('a signal that has aborted already opens no connection', async () => {
  await using server = await serveHttp((_request, response) => response.end())
  const reason = new Error('changed my mind before')
  await inTime(async () => {
    expect(await failureOf(fetch(server.url, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    const request = new Request(server.url, { signal: AbortSignal.abort(reason) })
    expect(await failureOf(fetch(request))).toBe(reason)
  })
  expect(server.connections).toBe(0)
})

test("a Request's signal counts, unless the call has one of its own or none on purpose", async () => {
  await using upstream = await slowUpstream({ delay: 60 })
  await inTime(async () => {
    const [ofRequest, ofCall] = [new AbortController(), new AbortController()]
    const request = (): Request => new Request(upstream.url, { signal: ofRequest.signal })
    const [plain, withOwn, withNone] = [
      failureOf(fetch(request())),
      fetch(request(), { signal: ofCall.signal }).then((response) => response.text()),
      fetch(request(), { signal: null }).then((response) => response.text()),
    ]
    const reason = new Error('changed my mind')
    ofRequest.abort(reason)
    expect(await plain).toBe(reason)
    expect(await Promise.all([withOwn, withNone])).toEqual(['done', 'done'])
  })
})

test("undici's own Request is taken by undici's own fetch", async () => {
  await using server = await serveHttp((request, response) => {
    response.end(
      `${request.method} ${String(request.headers['x-own'])} ${request.headers['x-request-deadline']?.length}`,
    )
  })
  const governed = wrapFetch(fetch7 as unknown as Fetch)
  await inTime(async () => {
    const request = new Request7(server.url, { method: 'PUT', headers: { 'x-own': 'kept' } })
    const response = await governed(request)
    expect(await response.text()).toBe('PUT kept 13')
    expect(response.constructor).not.toBe(Response)
  })
})

test('a dispatcher given with the call is the one that is used', async () => {
  await using server = await serveHttp((_request, response) => response.end('done'))
  const agent = new Agent({ connections: 1 })
  let dispatched = 0
  const counting = agent.compose((dispatch) => (options, handler) => {
    dispatched += 1
    return dispatch(options, handler)
  })
  const governed = wrapFetch(fetch7 as unknown as Fetch)
  await inTime(async () => {
    expect(await (await governed(server.url, through(counting))).text()).toBe('done')
  })
  expect(dispatched).toBe(1)
  await agent.destroy()
})

test("undici's own limits stay below the budget: what they end is the upstream's failure", async () => {
  await using upstream = await slowUpstream({ delay: 2_500, startsAtOnce: false })
  const original = getGlobalDispatcher()
  const strict = new Agent({ headersTimeout: 500 })
  setGlobalDispatcher(strict)
  try {
    await underDeadline(5_000, async (deadline) => {
      const failure = await failureOf(wrapFetch(fetch7 as unknown as Fetch)(upstream.url))
      expect(codesOf(failure)).toEqual(['UPSTREAM_ERROR', 'UND_ERR_HEADERS_TIMEOUT'])
      expect(deadline.reason).toBeUndefined()
    })
  } finally {
    setGlobalDispatcher(original)
    await strict.destroy()
  }
})

test('streams of a stand-in for fetch need be no byte streams, and keep their memory', async () => {
  const shared = new TextEncoder().encode('reused')
  const standIn: Fetch = () => {
    const parts = [new Uint8Array(0), shared, Buffer.from(' pooled')]
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const part = parts.shift()
        if (part === undefined) controller.close()
        else controller.enqueue(part)
      },
    })
    return Promise.resolve(new Response(body))
  }
  const governed = wrapFetch(standIn)
  await inTime(async () => {
    for (let call = 0; call < 3; call += 1) {
      expect(await (await governed('http://stand.in/')).text()).toBe('reused pooled')
    }
  })
})

test.each(['text', 'json', 'arrayBuffer', 'blob', 'formData'] as const)(
  'a body read whole by %s is cut off at the deadline, and its source too where a fetch heeds no signal',
  async (way) => {
    const { promise: cancelled, resolve: onCancel } = deferred<unknown>()
    const body = (): ReadableStream =>
      new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('{')), cancel: onCancel })
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    const deaf = wrapFetch(() => Promise.resolve(new Response(body(), { headers })))
    await underDeadline(100, async (deadline) => {
      const response = await deaf('http://deaf.invalid/')
      expect(await failureOf(response[way]())).toBe(deadline.reason)
      expect(await cancelled).toBe(deadline.reason)
      expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
    })
  },
)

test('a body that has been looked at is read whole all the same, once', async () => {
  await using server = await serveHttp((_request, response) => response.end('{"a":1}'))
  await inTime(async (deadline) => {
    const response = await fetch(server.url)
    expect(response.body).toBe(response.body)
    expect([response.bodyUsed, response.body?.locked]).toEqual([false, false])
    expect(await response.json()).toEqual({ a: 1 })
    expect([response.bodyUsed, response.body?.locked]).toEqual([true, true])
    expect(await failureOf(response.arrayBuffer())).toBeInstanceOf(TypeError)
    expect(onlyEntry(deadline).outcome).toBe('ok')

    const read = await fetch(server.url)
    const whole = read.text()
    expect([read.bodyUsed, read.body?.locked]).toEqual([true, true])
    expect(await failureOf(read.text())).toBeInstanceOf(TypeError)
    expect(() => read.clone()).toThrow(TypeError)
    expect(await whole).toBe('{"a":1}')
  })
})

test('a fetch that never settles and heeds no signal is left at the deadline', async () => {
  const deaf: Fetch = () => new Promise(() => undefined)
  await underDeadline(100, async (deadline) => {
    expect(await failureOf(wrapFetch(deaf)('http://deaf.invalid/'))).toBe(deadline.reason)
    expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
  })
})

test('one wrapped fetch within another says its error once', async () => {
  await using upstream = await slowUpstream()
  const inner = wrapFetch(undefined, { timeout: 100, operation: 'inner' })
  const outer = wrapFetch(inner, { operation: 'outer' })
  await inTime(async (deadline) => {
    const failure = await failureOf(outer(upstream.url))
    expect(codesOf(failure)).toEqual(['OPERATION_TIMEOUT'])
    expect(deadline.ledger.entries.map(({ outcome }) => outcome)).toEqual([
      'operation_timeout',
      'operation_timeout',
    ])
  })
})

test('what fetch itself refuses is the cause, and no request is made', async () => {
  await using server = await serveHttp((_request, response) => response.end())
  await inTime(async () => {
    const failure = await failureOf(fetch(server.url, { headers: { 'not a name': 'x' } }))
    expect(causesOf(failure).some((cause) => cause instanceof TypeError)).toBe(true)
    expect(await failureOf(fetch('not a url'))).toBeInstanceOf(TypeError)
  })
  expect(server.connections).toBe(0)
})

test('an answer that comes late, while the process was busy, does not count', async () => {
  await using server = await serveHttp((_request, response) => response.end('done'))
  await underDeadline(120, async (deadline) => {
    const response = await fetch(server.url)
    const busy = performance.now() + 150
    while (performance.now() < busy);
    const failure = await failureOf(response.text())
    expect(failure).toBe(deadline.reason)
    expect(onlyEntry(deadline).outcome).toBe('deadline_exceeded')
  })
})

test('a body that nobody reads is closed at the deadline', async () => {
  await using upstream = await slowUpstream({ startsAtOnce: true })
  const clock = new ManualClock()
  const keepsToIt = async (deadline: Deadline): Promise<void> => {
    await fetch(upstream.url)
    clock.advance(100)
    expect(await (await upstream.nextRequest()).abandoned).toBe(true)
    await until(() => onlyEntry(deadline).outcome === 'deadline_exceeded')
  }
  await underDeadline(100, keepsToIt, { clock })
})

test("an error's body that nobody reads holds neither the operation nor the connection, unless it is a large one", async () => {
  const size = { '/': 1_000, '/large': 1_000_000 }
  await using server = await serveHttp((request, response) => {
    const length = size[request.url as keyof typeof size]
    response.writeHead(503, { 'content-length': length }).end('x'.repeat(length))
  })
  const byText: Fetch = async (input, init) => {
    const response = await globalThis.fetch(input, init)
    const chunks = response.body as ReadableStream<Uint8Array>
    // as stand-ins for fetch make them: no byte stream
    const source = new ReadableStream({
      async start(controller) {
        for await (const chunk of chunks) controller.enqueue(chunk)
        controller.close()
      },
    })
    return new Response(source, response)
  }
  for (const governed of [fetch, wrapFetch(byText)]) {
    await inTime(async (deadline) => {
      const response = await governed(server.url)
      const [entry] = deadline.ledger.entries
      await until(() => entry?.outcome === 'upstream_error')
      expect((await response.text()).length).toBe(1_000)
    })
  }
  await inTime(async (deadline) => {
    const response = await fetch(`${server.url}large`)
    await pause(50)
    expect(onlyEntry(deadline).outcome).toBeUndefined()
    expect((await response.text()).length).toBe(1_000_000)
    expect(onlyEntry(deadline).outcome).toBe('upstream_error')
    const left = await fetch(`${server.url}large`)
    await left.body?.cancel()
    expect(deadline.ledger.entries.at(-1)?.outcome).toBe('cancelled')
  })
})
