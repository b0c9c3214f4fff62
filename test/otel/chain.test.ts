import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { findPostgres, startPostgres } from '../../packages/clients/test/support/postgres-server.ts'
import { redisServer } from '../support/redis-server.ts'
import { requireOrSkip } from '../support/requirements.ts'
import { otlpReceiver, type ReceivedSpan } from './support/otlp-receiver.ts'
import { type FinishedRequest, tracedChain, TracedService } from './support/traced-service.ts'

/** Everything that the SDK is told, it is told by the environment, as in a deployment. */
const exporting = (url: string): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
})

vi.setConfig({ testTimeout: 120_000 })

const frameworks = ['express', 'koa', 'fastify'] as const
const isServer = ({ kind }: ReceivedSpan): boolean => kind === 2
const isClient = ({ kind }: ReceivedSpan): boolean => kind === 3

function only(spans: readonly ReceivedSpan[], is: (span: ReceivedSpan) => boolean): ReceivedSpan {
  const [found, ...more] = spans.filter(is)
  if (found === undefined || more.length > 0) throw new Error(`${more.length + 1} spans, not one`)
  return found
}

function entryOf([entry]: readonly TracedService[]): TracedService {
  if (entry === undefined) throw new Error('an empty chain')
  return entry
}

function agrees(span: ReceivedSpan, attribute: string, figure: number | undefined): void {
  const value = span.attributes[attribute]
  expect(Number.isInteger(value), `${span.service} ${span.name} ${attribute}: ${String(value)}`).toBe(true)
  expect(Math.abs(Number(value) - (figure ?? Infinity))).toBeLessThanOrEqual(5)
}

/** What the spans of a service say agrees with what its ledger says. */
function agreesWithLedger(spans: readonly ReceivedSpan[], finished: FinishedRequest): void {
  const server = only(spans, isServer)
  agrees(server, 'deadline.budget.limit_ms', finished.budget)
  agrees(server, 'deadline.budget.consumed_ms', finished.elapsed)
  const local = finished.entries.filter(({ source }) => source === 'local')
  expect(local.length).toBeGreaterThan(0)
  for (const { path, remaining, granted, spent, outcome } of local) {
    const span = only(spans, ({ attributes }) => attributes['deadline.operation'] === path)
    agrees(span, 'deadline.budget.remaining_ms', remaining)
    agrees(span, 'deadline.budget.granted_ms', granted)
    agrees(span, 'deadline.budget.consumed_ms', spent)
    expect(span.attributes['deadline.outcome']).toBe(outcome)
  }
}

describe('Express, Koa and Fastify in processes of their own, started with --import @timebudget/otel/register', () => {
  test('are one trace, parents and children across hops, that agrees with their ledgers', async (context) => {
    const { port } = await redisServer(context)
    const receiver = await otlpReceiver()
    const chain = await tracedChain({ env: exporting(receiver.url), redis: `redis://127.0.0.1:${port}` })
    const entry = entryOf(chain)

    const response = await fetch(entry.url, { headers: { 'x-request-timeout-ms': '8000' } })
    expect(await response.text()).toBe('express > koa > leaf null')

    const all = await receiver.until((spans) => spans.filter(isServer).length === 3)
    const root = only(all, (span) => isServer(span) && span.service === 'express')
    const trace = all.filter(({ traceId }) => traceId === root.traceId)
    const of = (service: string): ReceivedSpan[] => trace.filter((span) => span.service === service)
    const parentOf = ({ parentSpanId }: ReceivedSpan): ReceivedSpan =>
      only(trace, ({ spanId }) => spanId === parentSpanId)

    expect(root.parentSpanId).toBe('')
    expect(trace.filter(isServer).map(({ service }) => service)).toEqual(
      expect.arrayContaining([...frameworks]),
    )
    for (const [index, framework] of frameworks.entries()) {
      const finished = await chain[index]?.finished()
      if (finished === undefined) throw new Error('no such hop')
      agreesWithLedger(of(framework), finished)
      // every span of the trace has its budget, whoever made it
      for (const { attributes } of of(framework)) {
        expect(Number.isInteger(attributes['deadline.budget.remaining_ms'])).toBe(true)
        expect(Number.isInteger(attributes['deadline.budget.consumed_ms'])).toBe(true)
      }
      if (framework === 'express') continue
      // server <- the client's span of fetch <- the operation of our fetch <- the user's operation <- server
      const call = parentOf(only(of(framework), isServer))
      expect(isClient(call)).toBe(true)
      expect(call.service).toBe(frameworks[index - 1])
      const fetched = parentOf(call)
      expect(fetched.attributes).toMatchObject({
        'deadline.operation': 'ask.fetch',
        'deadline.propagated': true,
      })
      expect(parentOf(fetched).attributes['deadline.operation']).toBe('ask')
      expect(isServer(parentOf(parentOf(fetched)))).toBe(true)
    }
    // what the instrumentation of ioredis makes stands under the operation of our client
    const command = only(of('fastify'), ({ attributes, name }) => isRedis(attributes) && name.includes('get'))
    expect(parentOf(command).attributes['deadline.operation']).toBe('redis')

    const budgets = frameworks.map((name) => only(of(name), isServer).attributes['deadline.budget.limit_ms'])
    expect(budgets).toEqual([...budgets].sort((one, other) => Number(other) - Number(one)))
    expect(chain.flatMap(({ reports }) => reports.filter(({ event }) => event === 'crashed'))).toEqual([])
  })

  test('a query that pg is watched at stands under the operation of our client', async (context) => {
    const postgres = await startPostgres(requireOrSkip(context, findPostgres(), 'apt-get install postgresql'))
    onTestFinished(() => postgres.stop())
    const receiver = await otlpReceiver()
    const service = await TracedService.start({
      framework: 'node',
      env: exporting(receiver.url),
      postgres: { host: '127.0.0.1', port: postgres.port, user: 'tester', database: 'postgres' },
    })

    const response = await fetch(new URL('/rows', service.url), {
      headers: { 'x-request-timeout-ms': '8000' },
    })
    expect(await response.text()).toBe('[{"seven":7}]')

    const all = await receiver.until((spans) => spans.some(isServer))
    const query = only(all, ({ name }) => name.startsWith('pg.query:SELECT'))
    const parent = only(all, ({ spanId }) => spanId === query.parentSpanId)
    expect(parent.attributes['deadline.operation']).toBe('pg')
    expect(Number(query.attributes['deadline.budget.remaining_ms'])).toBeLessThanOrEqual(
      Number(parent.attributes['deadline.budget.remaining_ms']),
    )
    expect(Number.isInteger(query.attributes['deadline.budget.consumed_ms'])).toBe(true)
  })

  test('carry deadlines whether or not the trace is sampled', async () => {
    const receiver = await otlpReceiver()
    const env = { ...exporting(receiver.url), OTEL_TRACES_SAMPLER: 'always_off' }
    const chain = await tracedChain({ env })

    await (await fetch(entryOf(chain).url, { headers: { 'x-request-timeout-ms': '8000' } })).text()

    for (const hop of chain) {
      const { budget, outcome } = await hop.finished()
      expect(outcome).toBe('ok')
      expect(budget).toBeLessThanOrEqual(8000)
      expect((await hop.report('started'))['source']).toBe('header')
    }
    expect(receiver.spans).toEqual([])
  })

  test('end alike where the leaf hangs, and each says so on its span', async () => {
    const receiver = await otlpReceiver()
    const entry = entryOf(await tracedChain({ env: exporting(receiver.url) }))
    // the first request of a process may take a second on a busy machine, and find no time left for the leaf
    await (await fetch(entry.url, { headers: { 'x-request-timeout-ms': '60000' } })).text()
    const [warm] = await receiver.until((spans) => spans.filter(isServer).length === 3)

    await fetch(`${entry.url}hang`, { headers: { 'x-request-timeout-ms': '1500' } })

    const spans = await receiver.until((come) => come.filter(isServer).length === 6)
    const servers = spans.filter((span) => isServer(span) && span.traceId !== warm?.traceId)
    expect(servers).toHaveLength(3)
    for (const { attributes, status } of servers) {
      expect(attributes['deadline.outcome']).toMatch(/^(deadline_exceeded|client_closed)$/)
      expect(status).toBe(attributes['deadline.outcome'] === 'client_closed' ? 0 : 2)
    }
  })
})

test('spans of middleware, which frameworks have instrumentations for, leave the facts to the span of the request', async () => {
  const receiver = await otlpReceiver()
  const telemetry = new URL('support/framework-telemetry.mjs', import.meta.url).href
  const chain = await tracedChain({ env: exporting(receiver.url), imports: [telemetry] })

  await (await fetch(entryOf(chain).url, { headers: { 'x-request-timeout-ms': '8000' } })).text()

  const spans = await receiver.until((come) => come.filter(isServer).length === 3)
  const middleware = spans.filter(
    ({ attributes }) => 'koa.type' in attributes || 'express.type' in attributes,
  )
  expect(middleware.length).toBeGreaterThan(0)
  for (const framework of frameworks) {
    const facts = spans.filter(
      ({ service, attributes }) => service === framework && 'deadline.budget.limit_ms' in attributes,
    )
    expect(facts.map(isServer)).toEqual([true])
  }
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
})

test('an exporter sends no deadline and makes no spans of its own exports', async () => {
  const receiver = await otlpReceiver()
  const service = await TracedService.start({ framework: 'node', env: exporting(receiver.url) })

  await fetch(service.url)
  await receiver.until((spans) => spans.some(isServer))
  await fetch(service.url)
  await receiver.until((spans) => spans.filter(isServer).length === 2)

  for (const headers of receiver.headers) {
    expect(Object.keys(headers).filter((name) => name.startsWith('x-request-'))).toEqual([])
  }
  expect(receiver.spans.filter(isClient)).toEqual([])
})

function isRedis(attributes: ReceivedSpan['attributes']): boolean {
  return attributes['db.system'] === 'redis' || attributes['db.system.name'] === 'redis'
}
