import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { operationFinished, requestStarted } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { beforeAll, expect, test, vi } from 'vitest'
import { inspector, type InspectorOptions } from '../src/index.ts'
import type { Snapshot } from '../src/snapshot.ts'
import { buildPage } from './support/built-page.ts'
import { ask, listen, onEnd, pause, until } from './support/server.ts'
import { startService } from './support/service.ts'

beforeAll(buildPage)

async function snapshotOf(url: string): Promise<Snapshot> {
  return JSON.parse((await ask(`${url}snapshot.json`)).body) as Snapshot
}

test('every answer has a strict policy, is not kept, and lets its connection go', async () => {
  const { inspector: url } = await startService()
  for (const [name, type] of [
    ['', 'text/html; charset=utf-8'],
    ['main.js', 'text/javascript; charset=utf-8'],
    ['page.css', 'text/css; charset=utf-8'],
    ['icon.svg', 'image/svg+xml'],
    ['snapshot.json', 'application/json; charset=utf-8'],
  ] as const) {
    const { status, headers, body } = await ask(url + name, { headers: { connection: 'keep-alive' } })
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': type,
      'content-length': String(Buffer.byteLength(body)),
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      connection: 'close',
    })
    const policy = headers['content-security-policy']
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toMatch(/unsafe|https?:|\*|data:/)
  }
})

test('the page asks nobody else for anything, and has no script or style in its markup', async () => {
  const { inspector: url } = await startService()
  const { body } = await ask(url)
  expect(body).not.toMatch(/https?:|<style|style=|<script(?![^>]*src=)|\son\w+=/)
  const files = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file)
  expect(files).toContain('main.js')
  for (const file of files) expect((await ask(`${url}${file}`)).status).toBe(200)
})

test('HEAD is answered without a body, other methods with 405, other paths with 404', async () => {
  const { inspector: url } = await startService()
  const head = await ask(`${url}snapshot.json`, { method: 'HEAD' })
  expect(head).toMatchObject({ status: 200, body: '' })
  expect(Number(head.headers['content-length'])).toBeGreaterThan(100)
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
    expect(await ask(url, { method })).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
  for (const path of [
    'other',
    'page/main.js',
    '../package.json',
    '..%2fpackage.json',
    'main.ts',
    '__proto__',
    '/',
  ])
    expect((await ask(url + path)).status).toBe(404)
})

test('without the slash it leads into its folder, whatever a proxy has put before it', async () => {
  const { url } = await startService()
  expect(await ask(`${url}/__budget?x=1`)).toMatchObject({ status: 308, headers: { location: '__budget/' } })
})

test('what only begins like its path is not its business', async () => {
  const { url } = await startService({ '/__budgets': () => 'ours' })
  expect(await ask(`${url}/__budgets`)).toMatchObject({ status: 200, body: 'ours' })
})

test('its own requests are not listed, nor those that it refuses', async () => {
  const { url, inspector: inspected } = await startService(
    {},
    { guard: ({ url: path }) => path?.includes('no') !== true },
  )
  await ask(`${inspected}?no`)
  await ask(`${inspected}main.js`)
  await snapshotOf(inspected)
  await ask(`${url}/fail`)
  const { requests, counts } = await snapshotOf(inspected)
  expect(requests.map(({ path }) => path)).toEqual(['/fail'])
  expect(counts).toMatchObject({ running: 0, finished: 1 })
})

test('in production it is off and does not listen', async () => {
  vi.stubEnv('NODE_ENV', 'production')
  const { url, inspector: inspected } = await startService()
  vi.unstubAllEnvs()
  expect(requestStarted.observed || operationFinished.observed).toBe(false)
  for (const path of ['', 'main.js', 'snapshot.json'])
    expect(await ask(inspected + path)).toMatchObject({ status: 404, body: 'Not Found\n' })
  expect((await ask(`${url}/quote`)).status).toBe(200)
})

test('in production a guard turns it on, for those to whom it says true', async () => {
  vi.stubEnv('NODE_ENV', 'production')
  const { inspector: url } = await startService(
    {},
    { guard: async ({ headers }) => headers.authorization === 'Bearer ours' },
  )
  vi.unstubAllEnvs()
  expect((await ask(url)).status).toBe(404)
  expect((await ask(url, { headers: { authorization: 'Bearer ours' } })).status).toBe(200)
})

test.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw new Error('down')
    },
  ],
  ['rejects', () => Promise.reject(new Error('down'))],
  ['answers with something else than true', () => 1],
  ['answers with nothing', () => undefined],
])('a guard that %s is a no, for every path and method', async (_how, guard) => {
  const { inspector: url } = await startService({}, { guard: guard as () => boolean })
  for (const path of ['', 'snapshot.json', 'main.js', 'other'])
    expect((await ask(url + path)).status).toBe(404)
  expect((await ask(url, { method: 'POST' })).status).toBe(404)
})

test('a guard that hangs is ended by the deadline, and hurts nobody', async () => {
  const { url, inspector: inspected } = await startService({}, { guard: () => new Promise(() => {}) })
  expect((await ask(inspected)).status).toBe(504)
  expect((await ask(`${url}/fail`)).status).toBe(500)
})

test('a guard that hangs where no deadline stands before it is a no after three seconds', async () => {
  const inspect = inspector({ guard: () => new Promise(() => {}) })
  onEnd(() => inspect.close())
  const url = await listen((request, response) => inspect(request, response))
  expect(await ask(`${url}/__budget/`)).toMatchObject({ status: 404, body: 'Not Found\n' })
})

test('it works where no deadline stands before it', async () => {
  const inspect = inspector({ path: '/debug/budgets' })
  onEnd(() => inspect.close())
  const url = await listen((request, response) => inspect(request, response))
  expect((await ask(`${url}/debug/budgets/`)).status).toBe(200)
  expect((await ask(`${url}/debug/budgets`)).headers.location).toBe('budgets/')
  expect((await ask(`${url}/other`)).status).toBe(404)
})

test.each<[string, unknown]>([
  ['guards', { guards: () => true }],
  ['guard', { guard: true }],
  ['path', { path: 'budget' }],
  ['path', { path: '/' }],
  ['path', { path: '/a/' }],
  ['path', { path: '/a?b' }],
  ['requests', { requests: 0 }],
  ['requests', { requests: 1e9 }],
  ['requests', { requests: '5' }],
])('the option %s is refused by name where it cannot be read: %j', (name, options) => {
  expect(() => inspector(options as InspectorOptions)).toThrow(new RegExp(`^${name}: `))
  expect(requestStarted.observed).toBe(false)
})

test('a page that is left open does not hold a server that closes', async () => {
  const { server, inspector: url } = await startService()
  server.keepAliveTimeout = 600_000
  const agentless = connect(Number(new URL(url).port), '127.0.0.1')
  onEnd(() => agentless.destroy())
  agentless.write('GET /__budget/snapshot.json HTTP/1.1\r\nHost: here\r\nConnection: keep-alive\r\n\r\n')
  agentless.resume()
  await once(agentless, 'end')
  const closing = once(server, 'close')
  server.close()
  await closing
})

test('a snapshot of many requests is answered in parts', async () => {
  const inspect = inspector()
  onEnd(() => inspect.close())
  const url = await listen(
    withDeadline((request, response) => inspect(request, response, () => response.end('done'))),
  )
  for (let index = 0; index < 250; index += 1) await ask(`${url}/item/${index}`)
  const first = await snapshotOf(`${url}/__budget/`)
  expect(first).toMatchObject({ more: true, kept: { length: 250 }, requests: { length: 200 } })
  const rest = await ask(`${url}/__budget/snapshot.json?place=${first.place}`)
  expect(JSON.parse(rest.body)).toMatchObject({ more: false, requests: { length: 50 } })
})

test('fifty pages that do not read what they have asked for hold nobody up', async () => {
  const { url, inspector: inspected } = await startService()
  for (let index = 0; index < 100; index += 1) await ask(`${url}/fail?${'x'.repeat(50)}`)
  const pages = Array.from({ length: 50 }, () => {
    const page = connect(Number(new URL(url).port), '127.0.0.1')
    onEnd(() => page.destroy())
    // the second question comes to a connection that the first one's answer has ended
    page.write('GET /__budget/snapshot.json HTTP/1.1\r\nHost: here\r\n\r\n'.repeat(2))
    return page.on('error', () => {}).pause()
  })
  expect((await ask(`${url}/fail`)).status).toBe(500)
  expect((await snapshotOf(inspected)).counts).toMatchObject({ running: 0, finished: 101 })
  const [page] = pages
  let answers = ''
  for await (const chunk of page ?? []) answers += String(chunk)
  expect(answers.match(/HTTP\/1\.1 200/g)).toHaveLength(1)
})

test('all of one request is told where it is asked for', async () => {
  const { url, inspector: inspected } = await startService()
  await ask(`${url}/limited`)
  const { requests, request } = await snapshotOf(inspected)
  expect(request).toBe(null)
  const { body } = await ask(`${inspected}snapshot.json?request=${requests[0]?.id}`)
  expect((JSON.parse(body) as Snapshot).request).toMatchObject({
    path: '/limited',
    entries: [
      { name: 'rerank', outcome: 'operation_timeout', granted: 120, code: 'OPERATION_TIMEOUT' },
      { name: 'generate', outcome: 'short_circuited', floor: 3_600_000 },
      { name: 'price', outcome: 'error', code: null },
    ],
  })
  for (const hostile of ['-1', 'NaN', '1e999', 'x', '', '%00', '__proto__', '1.5'])
    expect(JSON.parse((await ask(`${inspected}snapshot.json?request=${hostile}`)).body)).toMatchObject({
      request: null,
    })
})

test('a client that leaves shows as such, with how it left', async () => {
  const { visit, inspector: url } = await startService()
  const leave = visit('/hang')
  await until(async () => (await snapshotOf(url)).counts.running === 1)
  leave()
  await until(async () => (await snapshotOf(url)).counts.finished === 1)
  const { requests } = await snapshotOf(url)
  expect(requests).toMatchObject([
    { path: '/hang', outcome: 'client_closed', goneBy: expect.stringMatching(/^client_/) },
  ])
})

test('a deadline that a route has tightened is where it is on the scale of its request', async () => {
  const inspect = inspector()
  onEnd(() => inspect.close())
  const tight = withDeadline(
    async (_request, response) => {
      await pause(40)
      response.end('done')
    },
    { default: '300ms' },
  )
  const url = await listen(
    withDeadline((request, response) =>
      inspect(request, response, () => void pause(100).then(() => tight(request, response))),
    ),
  )
  await ask(`${url}/tight`)
  const { requests } = await snapshotOf(`${url}/__budget/`)
  expect(requests).toMatchObject([{ source: 'route', budget: 300 }])
  expect(requests[0]?.deadlineAt).toBeGreaterThan(395)
  expect(requests[0]?.elapsed).toBeGreaterThan(135)
  expect(requests[0]?.deadlineAt).toBeLessThan((requests[0]?.elapsed ?? 0) + 300)
})

test('several inspectors see the same, each in its place', async () => {
  const inspectors = ['/one', '/two'].map((path) => inspector({ path }))
  for (const each of inspectors) onEnd(() => each.close())
  const [one, two] = inspectors
  const server = createServer(
    withDeadline((request, response) =>
      one?.(request, response, () => two?.(request, response, () => response.end('ours'))),
    ),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onEnd(() => server.close())
  const { port } = server.address() as { port: number }
  const url = `http://127.0.0.1:${port}`
  await ask(`${url}/quote`)
  for (const path of ['one', 'two'])
    expect((await snapshotOf(`${url}/${path}/`)).requests.map((each) => each.path)).toContain('/quote')
})
