import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { nodeMatrix } from '../support/node-matrix.ts'
import { requireOrSkip } from '../support/requirements.ts'
import { type ChainReport, PropagatingChain, valuesOf } from './support/propagating-services.ts'

// several Nodes, on a machine that others use too
vi.setConfig({ testTimeout: 60_000 })

const newerSdk = fileURLToPath(new URL('../../node_modules/.cache/timebudget-otel3', import.meta.url))

/** Every Node with the line of the SDK for Node 20, and those that can with the newer one. */
const setUps = nodeMatrix().flatMap(({ version, path }) => {
  const older = { version, path, line: 2 as const }
  return version.startsWith('20.') ? [older] : [older, { version, path, line: 3 as const }]
})

const traceIdOf = (client: string, digit: string): string => `${client.length}${digit.repeat(31)}`
const spanId = 'abcdefabcdefabcd'

describe.each(setUps)('on Node $version with the SDK of line $line', ({ path: node, line }) => {
  const seen: Array<{ readonly path: string; readonly rawHeaders: readonly string[] }> = []
  const leaf = createServer(({ url: path = '', rawHeaders }, response) => {
    seen.push({ path, rawHeaders })
    response.end('answered')
  })
  let chain: PropagatingChain | undefined

  beforeAll(async () => {
    if (node === undefined || (line === 3 && !existsSync(newerSdk))) return
    leaf.listen(0, '127.0.0.1')
    await once(leaf, 'listening')
    const { port } = leaf.address() as { readonly port: number }
    chain = await PropagatingChain.start({
      frameworks: ['express', 'koa', 'fastify'],
      upstream: `http://127.0.0.1:${port}/`,
      telemetry: { line, options: { inject: ['127.0.0.1'] } },
      node,
    })
  }, 60_000)

  afterAll(() => {
    chain?.[Symbol.dispose]()
    leaf.close()
    leaf.closeAllConnections()
  })

  async function ask(
    context: { skip(note: string): never },
    path: string,
    traceparent: string,
  ): Promise<PropagatingChain> {
    requireOrSkip(context, node, 'node scripts/install-node-matrix.mjs')
    const asked = requireOrSkip(context, chain, 'node scripts/install-apart.mjs')
    const headers = {
      traceparent,
      'x-request-timeout-ms': '9000',
      'x-request-deadline': `${Date.now() + 9_000}`,
    }
    const response = await fetch(new URL(path, asked.url), { headers })
    expect([response.status, await response.text()]).toEqual([200, 'answered'])
    return asked
  }

  /** How the request to that path arrived behind each service. */
  function arrivals(path: string): ReadonlyArray<{
    readonly from: ChainReport
    readonly values: (header: string) => readonly string[]
  }> {
    const entered = chain?.entered(path) ?? []
    const behind = [...entered.slice(1), ...seen.filter((each) => each.path === path)]
    expect([entered.length, behind.length]).toEqual([3, 3])
    return entered.map((from, index) => ({
      from,
      values: (header) => valuesOf(behind[index]?.['rawHeaders'] as readonly string[], header),
    }))
  }

  /** Each service tells the next what it holds itself: the moment, and no more than is left. */
  function expectOneDeadline(path: string): void {
    for (const { from, values } of arrivals(path)) {
      // instrumentations of frameworks go to great lengths between a middleware and a handler
      expect(from['places']).not.toContain(false)
      const [epochMs, ...others] = values('x-request-deadline').map(Number)
      expect(others).toEqual([])
      // the moment received, or its own clock's view where that is further off than clocks may be
      expect(Math.abs((epochMs ?? 0) - Number(from['expiresAt']))).toBeLessThanOrEqual(51)
      const [left, ...more] = values('x-request-timeout-ms').map(Number)
      expect(more).toEqual([])
      expect(left).toBeGreaterThan(1_000)
      expect(left).toBeLessThanOrEqual(Math.ceil(Number(from['left'])))
    }
  }

  test.for(['fetch', 'undici', 'http'])(
    'a chain of three frameworks that wraps nothing is one trace and has one deadline: %s',
    async (client, context) => {
      const traceId = traceIdOf(client, 'a')
      const path = `/${client}/sampled`
      const asked = await ask(context, path, `00-${traceId}-${spanId}-01`)
      expectOneDeadline(path)
      await asked.until(() => ([1, 2] as const).every((kind) => asked.spans(traceId, kind).length === 3))
      let parent = spanId
      for (const { values } of arrivals(path)) {
        const [version, trace, sent = '', flags] = values('traceparent').join().split('-')
        expect([version, trace, flags]).toEqual(['00', traceId, '01'])
        expect(asked.spans(traceId, 1).map((span) => span.parent)).toContain(parent)
        expect(asked.spans(traceId, 2).map((span) => span.spanId)).toContain(sent)
        parent = sent
      }
      const told = arrivals(path).map(({ values }) => values('baggage'))
      const total = Math.round(Number(arrivals(path)[0]?.from['budget']))
      expect(told).toEqual([1, 2, 3].map((hop) => [`deadline.total_ms=${total},deadline.hop=${hop}`]))
    },
  )

  test.for(['fetch', 'undici', 'http'])(
    'a trace that is sampled out still carries its deadline: %s',
    async (client, context) => {
      const traceId = traceIdOf(client, 'b')
      const path = `/${client}/sampled-out`
      const asked = await ask(context, path, `00-${traceId}-${spanId}-00`)
      expectOneDeadline(path)
      for (const { values } of arrivals(path))
        expect(values('traceparent')[0]).toMatch(new RegExp(`^00-${traceId}-.*-00$`))
      expect([...asked.spans(traceId, 1), ...asked.spans(traceId, 2)]).toEqual([])
    },
  )
})
