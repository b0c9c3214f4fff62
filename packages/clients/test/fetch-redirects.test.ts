import type { IncomingMessage, RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { wrapFetch } from '../src/fetch.ts'
import { codesOf, failureOf, onlyEntry, pause, underDeadline } from './support/calls.ts'
import { serveHttp, type TestServer } from './support/servers.ts'

interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A server that redirects `/from` and answers anything else with what it was asked. */
async function redirecting(
  how: { readonly status: number; readonly to?: string; readonly after?: number },
  seen: Seen[],
): Promise<TestServer> {
  const listener: RequestListener = async (request, response) => {
    const { method = '', url = '', headers } = request
    seen.push({ method, url, headers, body: await text(request) })
    if (!url.startsWith('/from')) return response.end('arrived')
    await pause(how.after ?? 0)
    return response.writeHead(how.status, { location: how.to ?? '/to?q=1' }).end('go on')
  }
  return serveHttp(listener)
}

type Body = NonNullable<RequestInit['body']>

const post = { method: 'POST', body: 'ping', headers: { 'content-type': 'text/plain', 'x-own': 'kept' } }
const fetch = wrapFetch()

test.each([
  { status: 301, method: 'GET', body: '' },
  { status: 302, method: 'GET', body: '' },
  { status: 303, method: 'GET', body: '' },
  { status: 307, method: 'POST', body: 'ping' },
  { status: 308, method: 'POST', body: 'ping' },
])('a $status after a POST is followed by a $method', async ({ status, method, body }) => {
  const seen: Seen[] = []
  await using server = await redirecting({ status }, seen)
  await underDeadline(5_000, async (deadline) => {
    const response = await fetch(`${server.url}from#part`, post)
    expect(await response.text()).toBe('arrived')
    expect(response.redirected).toBe(true)
    expect(response.url).toBe(`${server.url}to?q=1`)
    expect(response.clone).toBeTypeOf('function')
    expect(onlyEntry(deadline).outcome).toBe('ok')
  })
  expect(seen[1]).toMatchObject({ method, body, url: '/to?q=1' })
  expect(seen[1]?.headers['x-own']).toBe('kept')
  expect(seen[1]?.headers['content-type']).toBe(body === '' ? undefined : 'text/plain')
})

test.each([
  { status: 303, method: 'HEAD', next: 'HEAD' },
  { status: 302, method: 'PUT', next: 'PUT' },
  { status: 303, method: 'DELETE', next: 'GET' },
])(
  'a $status after a $method is followed by a $next, as by the global fetch',
  async ({ status, method, next }) => {
    const seen: Seen[] = []
    await using server = await redirecting({ status }, seen)
    await underDeadline(5_000, () => fetch(`${server.url}from`, { method }))
    await globalThis.fetch(`${server.url}from`, { method })
    expect(seen.map((request) => request.method)).toEqual([method, next, method, next])
  },
)

test('each hop is told what is left by then', async () => {
  const seen: Seen[] = []
  await using server = await redirecting({ status: 302, after: 80 }, seen)
  await underDeadline(5_000, async () => (await fetch(`${server.url}from`)).text())
  const [first = 0, second = 0] = seen.map(({ headers }) => Number(headers['x-request-timeout-ms']))
  expect(second).toBeGreaterThan(0)
  expect(second).toBeLessThanOrEqual(first - 79)
  expect(seen[1]?.headers['x-request-deadline']).toBe(seen[0]?.headers['x-request-deadline'])
})

test('all hops together have one budget', async () => {
  await using server = await redirecting({ status: 302, to: '/from', after: 60 }, [])
  await underDeadline(200, async (deadline) => {
    expect(codesOf(await failureOf(fetch(`${server.url}from`)))).toContain('DEADLINE_EXCEEDED')
    expect(deadline.elapsed()).toBeLessThan(400)
  })
})

test('another origin gets no credentials, and no deadline if propagateTo forbids it', async () => {
  const [seenHere, seenThere]: [Seen[], Seen[]] = [[], []]
  await using there = await redirecting({ status: 302 }, seenThere)
  await using here = await redirecting({ status: 302, to: `${there.url}to` }, seenHere)
  const careful = wrapFetch(undefined, { propagateTo: [here.host] })
  const headers = {
    authorization: 'Bearer secret',
    cookie: 'a=b',
    'x-request-timeout-ms': '1',
    'x-own': 'kept',
  }
  await underDeadline(5_000, async () => (await careful(`${here.url}from`, { headers })).text())
  expect(seenHere[0]?.headers).toMatchObject({ authorization: 'Bearer secret', cookie: 'a=b' })
  expect(seenHere[0]?.headers['x-request-deadline']).toMatch(/^\d{13}$/)
  const got = seenThere[0]?.headers
  expect(got?.['x-own']).toBe('kept')
  for (const name of ['authorization', 'cookie', 'x-request-deadline', 'x-request-timeout-ms']) {
    expect(got?.[name]).toBeUndefined()
  }
})

test("another origin's Server-Timing counts only if that origin is trusted", async () => {
  await using there = await serveHttp((_request, response) =>
    response.writeHead(200, { 'server-timing': 'retrieve;dur=1' }).end(),
  )
  await using here = await redirecting({ status: 302, to: there.url }, [])
  const careful = wrapFetch(undefined, { trust: [here.host] })
  await underDeadline(5_000, async (deadline) => {
    await (await careful(`${here.url}from`)).text()
    expect(onlyEntry(deadline).outcome).toBe('ok')
  })
})

test.each([
  { kind: 'text', body: (): Body => 'ping', type: /^text\/plain/, sent: /^ping$/ },
  {
    kind: 'URLSearchParams',
    body: (): Body => new URLSearchParams({ a: 'ä' }),
    type: /urlencoded/,
    sent: /^a=%C3%A4$/,
  },
  { kind: 'bytes', body: (): Body => new Uint8Array([112, 105]), type: /^$/, sent: /^pi$/ },
  {
    kind: 'a Blob',
    body: (): Body => new Blob(['ping'], { type: 'x/y' }),
    type: /^x\/y$/,
    sent: /^ping$/,
  },
  {
    kind: 'FormData',
    body: (): Body => {
      const form = new FormData()
      form.set('field', 'value')
      return form
    },
    type: /^multipart\/form-data; boundary=/,
    sent: /name="field"\r\n\r\nvalue/,
  },
])('a body of $kind is sent again after a 307, by a call and by a Request', async ({ body, type, sent }) => {
  const seen: Seen[] = []
  await using server = await redirecting({ status: 307 }, seen)
  const url = `${server.url}from`
  await underDeadline(5_000, async () => {
    await (await fetch(url, { method: 'POST', body: body() })).text()
    await (await fetch(new Request(url, { method: 'POST', body: body() }))).text()
  })
  expect(seen.map((request) => request.url)).toEqual(['/from', '/to?q=1', '/from', '/to?q=1'])
  for (const request of seen) {
    expect(request.method).toBe('POST')
    expect(request.headers['content-type'] ?? '').toMatch(type)
    expect(request.body).toMatch(sent)
  }
})

test("a Request's body survives more than one redirect", async () => {
  const seen: Seen[] = []
  await using last = await redirecting({ status: 307 }, seen)
  await using first = await redirecting({ status: 308, to: `${last.url}from` }, [])
  await underDeadline(5_000, async () => {
    const request = new Request(`${first.url}from`, { method: 'POST', body: 'ping' })
    expect(await (await fetch(request)).text()).toBe('arrived')
  })
  expect(seen.map(({ body }) => body)).toEqual(['ping', 'ping'])
})

test('a stream cannot be sent again after a 307, but is given up for a 303', async () => {
  const streamed = (): RequestInit => ({ method: 'POST', body: new Blob(['ping']).stream(), duplex: 'half' })
  const seen: Seen[] = []
  await using strict = await redirecting({ status: 307 }, seen)
  await using lax = await redirecting({ status: 303 }, seen)
  await underDeadline(5_000, async () => {
    const failure = await failureOf(fetch(`${strict.url}from`, streamed()))
    expect(codesOf(failure)).toContain('UPSTREAM_ERROR')
    expect(String((failure as Error).cause)).toBe('TypeError: fetch failed')
    expect(await (await fetch(`${lax.url}from`, streamed())).text()).toBe('arrived')
  })
})

test('the twenty-first redirect fails, as with the global fetch', async () => {
  let requests = 0
  await using server = await serveHttp((_request, response) => {
    requests += 1
    response.writeHead(302, { location: `/${requests}` }).end()
  })
  await underDeadline(5_000, async () => {
    const failure = await failureOf(fetch(server.url))
    expect(failure).toMatchObject({ code: 'UPSTREAM_ERROR', cause: { message: 'fetch failed' } })
  })
  const ours = requests
  await failureOf(globalThis.fetch(server.url))
  expect([ours, requests]).toEqual([21, 42])
})

test.each(['http://[::', 'http://a b/', 'ftp://127.0.0.1/', 'javascript:alert(1)'])(
  'a redirect to %s fails and opens no connection',
  async (location) => {
    await using server = await redirecting({ status: 302, to: location }, [])
    await underDeadline(5_000, async (deadline) => {
      const failure = await failureOf(fetch(`${server.url}from`))
      expect(failure).toMatchObject({ code: 'UPSTREAM_ERROR', cause: { message: 'fetch failed' } })
      expect(onlyEntry(deadline).outcome).toBe('upstream_error')
    })
  },
)

test("'manual' and 'error' mean what they mean to the global fetch", async () => {
  const seen: Seen[] = []
  await using server = await redirecting({ status: 302 }, seen)
  await underDeadline(5_000, async () => {
    for (const input of [`${server.url}from`, new Request(`${server.url}from`)]) {
      const manual = await fetch(input, { redirect: 'manual' })
      expect([manual.status, manual.redirected, manual.headers.get('location')]).toEqual([
        302,
        false,
        '/to?q=1',
      ])
      expect(await manual.text()).toBe('go on')
    }
    const byRequest = await fetch(new Request(`${server.url}from`, { redirect: 'manual' }))
    expect(byRequest.status).toBe(302)
    await byRequest.body?.cancel()
    expect(codesOf(await failureOf(fetch(`${server.url}from`, { redirect: 'error' })))).toContain(
      'UPSTREAM_ERROR',
    )
  })
  expect(seen.map(({ url }) => url)).toEqual(['/from', '/from', '/from', '/from'])
})

test('a redirect without a Location is an answer', async () => {
  await using server = await serveHttp((_request, response) => response.writeHead(301).end('nowhere'))
  await underDeadline(5_000, async () => {
    const response = await fetch(server.url)
    expect([response.status, response.redirected, await response.text()]).toEqual([301, false, 'nowhere'])
  })
})
