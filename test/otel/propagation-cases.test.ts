import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { nodeMatrix } from '../support/node-matrix.ts'
import { requireOrSkip } from '../support/requirements.ts'
import { type ChainSettings, PropagatingChain, valuesOf } from './support/propagating-services.ts'

// a process of its own for most, on a machine that others use too
vi.setConfig({ testTimeout: 60_000 })

const newerSdk = fileURLToPath(new URL('../../node_modules/.cache/timebudget-otel3', import.meta.url))

/** What came to the upstream of a chain, which takes its time. */
const seen: Array<{ readonly path: string; readonly rawHeaders: readonly string[] }> = []
const upstream = createServer(({ url: path = '', rawHeaders }, response) => {
  seen.push({ path, rawHeaders })
  response.end('answered')
})
let upstreamUrl = ''
beforeAll(async () => {
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  upstreamUrl = `http://127.0.0.1:${(upstream.address() as { readonly port: number }).port}/`
})
afterAll(() => {
  upstream.close()
  upstream.closeAllConnections()
})

const start = (settings: Omit<ChainSettings, 'upstream'>): Promise<PropagatingChain> =>
  PropagatingChain.start({ ...settings, upstream: upstreamUrl })

/** The values of a header of the only request to that path. */
function received(path: string, header: string): readonly string[] {
  const [request, ...more] = seen.filter((each) => each.path === path)
  if (request === undefined || more.length > 0) throw new Error(`${more.length + 1} requests to ${path}`)
  return valuesOf(request.rawHeaders, header)
}

async function ask(chain: PropagatingChain, path: string): Promise<void> {
  const response = await fetch(new URL(path, chain.url), { headers: { 'x-request-timeout-ms': '9000' } })
  expect([response.status, await response.text()]).toEqual([200, 'answered'])
  expect(chain.all('crashed')).toEqual([])
}

function expectDeadlineOnce(path: string): void {
  const [left, ...more] = received(path, 'x-request-timeout-ms').map(Number)
  expect(more).toEqual([])
  expect(left).toBeGreaterThan(1_000)
  expect(left).toBeLessThanOrEqual(9_000)
  expect(received(path, 'x-request-deadline')).toHaveLength(1)
}

const inject = ['127.0.0.1']
const plain = ['fetch', 'undici', 'http'] as const
const governed = ['governed-fetch', 'governed-undici', 'governed-http'] as const

describe.each(nodeMatrix())('on Node $version', ({ version, path: node }) => {
  const present = (context: { skip(note: string): never }): string =>
    requireOrSkip(context, node, 'node scripts/install-node-matrix.mjs')

  test('the header is on the wire once, with our own clients, and with instrumentations registered twice', async (context) => {
    using chain = await start({
      frameworks: ['express', 'fastify'],
      node: present(context),
      telemetry: { twice: true, express: 'express-57', options: { inject } },
    })
    for (const client of [...plain, ...governed]) {
      const path = `/${client}/twice-${version}`
      const told = chain.all('sent').length
      await ask(chain, path)
      expect(
        chain
          .all('sent')
          .slice(told)
          .map(({ sent }) => sent),
      ).toEqual([true, true])
      expectDeadlineOnce(path)
      for (const { rawHeaders, places } of chain.entered(path)) {
        expect(valuesOf(rawHeaders as readonly string[], 'x-request-timeout-ms')).toHaveLength(1)
        expect(places).not.toContain(false)
      }
    }
  })

  test.for(['instrumentations', 'propagator'] as const)(
    'calls carry the deadline without a tracer provider, and background work none: only %s',
    async (sdk, context) => {
      using chain = await start({
        frameworks: ['koa'],
        node: present(context),
        telemetry: { sdk, options: { inject } },
      })
      for (const client of plain) {
        const path = `/${client}/${sdk}-${version}`
        await ask(chain, path)
        expectDeadlineOnce(path)
        const background = `/${client}/background/${sdk}-${version}`
        await ask(chain, background)
        for (const header of ['x-request-timeout-ms', 'x-request-deadline', 'baggage'])
          expect(received(background, header)).toEqual([])
      }
    },
  )

  test('an application of ES modules alone, which no loader hook instruments, carries it too', async (context) => {
    using chain = await start({
      frameworks: ['esm'],
      node: present(context),
      telemetry: { options: { inject } },
    })
    for (const client of ['fetch', 'http']) {
      const path = `/${client}/esm-${version}`
      await ask(chain, path)
      expectDeadlineOnce(path)
    }
    // nobody has asked an instrumentation of node:http to inject
    expect(received(`/http/esm-${version}`, 'traceparent')).toEqual([])
  })
})

const lines = nodeMatrix().flatMap(({ version, path }) => {
  const line = { '20': 2, '22': 3 }[version.slice(0, 2)]
  return line === undefined ? [] : [{ line: line === 2 ? (2 as const) : (3 as const), path }]
})

test.for(lines)(
  "an exporter's own requests carry nothing: SDK of line $line",
  async ({ line, path }, context) => {
    const node = requireOrSkip(context, path, 'node scripts/install-node-matrix.mjs')
    if (line === 3)
      requireOrSkip(context, existsSync(newerSdk) || undefined, 'node scripts/install-apart.mjs')
    using chain = await start({
      frameworks: ['koa'],
      node,
      telemetry: { line, exporter: `${upstreamUrl}export/${line}`, options: { inject: true } },
    })
    const exported = (): typeof seen => seen.filter((each) => each.path === `/export/${line}`)
    for (let round = 0; exported().length < 10; round += 1)
      await ask(chain, `/fetch/exporting-${line}-${round}`)
    for (const { rawHeaders } of exported())
      for (const header of ['x-request-timeout-ms', 'x-request-deadline', 'baggage'])
        expect(valuesOf(rawHeaders, header)).toEqual([])
  },
)

test('an SDK without exporter reads and writes all the same', async () => {
  using chain = await start({ frameworks: ['koa'], telemetry: { sdk: 'silent', options: { inject } } })
  const headers = {
    'x-request-timeout-ms': '9000',
    baggage: 'deadline.total_ms=20000,deadline.origin=gateway,deadline.hop=1,user=7',
  }
  await (await fetch(new URL('/http/silent', chain.url), { headers })).text()
  expectDeadlineOnce('/http/silent')
  expect(received('/http/silent', 'baggage')).toEqual([
    'user=7,deadline.total_ms=20000,deadline.origin=gateway,deadline.hop=2',
  ])
})

test('with two copies of the API of OpenTelemetry it says so, and the application works on without it', async (context) => {
  const newer = nodeMatrix().find(({ version, path }) => version.startsWith('22.') && path !== undefined)
  const node = requireOrSkip(context, newer?.path, 'node scripts/install-node-matrix.mjs')
  requireOrSkip(context, existsSync(newerSdk) || undefined, 'node scripts/install-apart.mjs')
  using chain = await start({ frameworks: ['express'], node, telemetry: { copies: 2, options: { inject } } })
  await ask(chain, '/fetch/two-copies')
  expect(received('/fetch/two-copies', 'x-request-timeout-ms')).toEqual([])
  expect(received('/fetch/two-copies', 'traceparent')).toHaveLength(1)
  await ask(chain, '/governed-fetch/two-copies')
  expectDeadlineOnce('/governed-fetch/two-copies')
  await chain.until(() => chain.all('warned').length > 0)
  expect(chain.all('warned').map(({ message }) => message)).toEqual([
    expect.stringMatching(/two copies of @opentelemetry\/api.* version 1\.9\.\d+.*npm ls/s),
  ])
})
