import { metrics } from '@opentelemetry/api'
import { metrics as sdkMetrics, NodeSDK } from '@opentelemetry/sdk-node'
import { InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import * as core from '@timebudget/core'
import { DeadlineSpanProcessor, recordMetrics } from '@timebudget/otel'
import { expect, test } from 'vitest'

const built = new URL('../../packages/core/dist/index.js', import.meta.url).href

test('operations of two copies of core are spans of one tree and counted once each', async () => {
  const other = (await import(/* @vite-ignore */ built)) as typeof core
  expect(other.operation).not.toBe(core.operation)
  const exporter = new InMemorySpanExporter()
  const collected = new sdkMetrics.InMemoryMetricExporter(1)
  const reader = new sdkMetrics.PeriodicExportingMetricReader({
    exporter: collected,
    exportIntervalMillis: 60_000,
  })
  const sdk = new NodeSDK({
    spanProcessors: [new DeadlineSpanProcessor(), new SimpleSpanProcessor(exporter)],
    metricReaders: [reader],
    logRecordProcessors: [],
    instrumentations: [],
    autoDetectResources: false,
  })
  sdk.start()
  const stop = recordMetrics(metrics.getMeter('both'))

  const deadline = other.Deadline.after('5s')
  await other.runWithDeadline(deadline, () =>
    core.operation('ours', {}, () => other.operation('theirs', { timeout: '1s' }, async () => {})),
  )
  await reader.forceFlush()
  stop()
  deadline.settle()

  const [theirs, ours] = exporter.getFinishedSpans()
  expect([theirs?.name, ours?.name]).toEqual(['theirs', 'ours'])
  expect(theirs?.parentSpanContext?.spanId).toBe(ours?.spanContext().spanId)
  for (const span of [theirs, ours])
    expect(span?.attributes['deadline.budget.remaining_ms']).toBeGreaterThan(2_000)
  const durations = collected
    .getMetrics()[0]
    ?.scopeMetrics.flatMap((scope) => scope.metrics)
    .find(({ descriptor }) => descriptor.name === 'deadline.operation.duration')
  expect(durations?.dataPoints.map(({ value }) => (value as { count: number }).count)).toEqual([1, 1])
  await sdk.shutdown()
})
