import { existsSync } from 'node:fs'
import { expect, test, type TestContext, vi } from 'vitest'
import { nodeMatrix } from '../support/node-matrix.ts'
import { requireOrSkip } from '../support/requirements.ts'
import { Autotel, autotelProgram } from './support/autotel.ts'
import { TracedService } from './support/traced-service.ts'

vi.setConfig({ testTimeout: 120_000 })

const lines = { 'for Node 20': 2, 'for Node 22.15 and later': 3 } as const

for (const [name, line] of Object.entries(lines)) {
  test(`an independent receiver gives the trace back with our attributes: the SDK ${name}`, async (context) => {
    const node = newerNode(context)
    const autotel = await Autotel.start(node)
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: autotel.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    }
    const leaf = await TracedService.start({ framework: 'fastify', line, node, env })
    const entry = await TracedService.start({ framework: 'express', line, node, env, next: leaf.url })

    const traceId = '0af7651916cd43dd8448eb211c80319c'
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`
    await (await fetch(entry.url, { headers: { traceparent, 'x-request-timeout-ms': '8000' } })).text()

    // two servers, three operations and a client's span before the leaf, one operation in it
    const spans = await autotel.trace(traceId, 7)
    const server = spans.find(({ parentSpanId }) => parentSpanId === 'b7ad6b7169203331')
    const { elapsed } = await entry.finished()
    expect(server?.serviceName).toBe('express')
    expect(server?.tags).toMatchObject({
      'deadline.budget.limit_ms': 8000,
      'deadline.budget.remaining_ms': 8000,
      'deadline.source': 'header',
      'deadline.clamped': false,
      'deadline.outcome': 'ok',
    })
    expect(Math.abs(Number(server?.tags['deadline.budget.consumed_ms']) - elapsed)).toBeLessThanOrEqual(5)
    const parentOf = (span: (typeof spans)[number] | undefined): (typeof spans)[number] | undefined =>
      spans.find(({ spanId }) => spanId === span?.parentSpanId)
    const behind = spans.find(
      ({ serviceName, tags }) => serviceName === 'fastify' && tags['deadline.source'] === 'header',
    )
    const names = [parentOf(behind), parentOf(parentOf(behind)), parentOf(parentOf(parentOf(behind)))].map(
      (span) => span?.operationName,
    )
    expect(names).toEqual(['GET', 'fetch', 'ask'])
    for (const { tags } of spans) {
      expect(tags).toHaveProperty(['deadline.budget.remaining_ms'])
      expect(tags).toHaveProperty(['deadline.budget.consumed_ms'])
    }
  })
}

/** Both the receiver and the newer line of the SDK want Node 22. */
function newerNode(context: TestContext): string {
  const newer = nodeMatrix().find(
    ({ version, path }) => Number.parseInt(version, 10) >= 22 && path !== undefined,
  )
  requireOrSkip(context, existsSync(autotelProgram) || undefined, 'node scripts/install-apart.mjs')
  return requireOrSkip(context, newer?.path, 'node scripts/install-node-matrix.mjs')
}
