import type { Attributes, Meter } from '@opentelemetry/api'
import { DataPointType, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { type MetricsOptions, recordMetrics } from '../src/index.ts'

/** A histogram's data point. */
export interface Recorded {
  readonly count: number
  readonly sum: number
  readonly boundaries: readonly number[]
}

/** Records metrics with the real SDK, and says what it would export. */
export interface Metered {
  readonly meter: Meter
  stop(): void
  /** Every series of a metric, or `undefined` if there is no such metric. */
  series(name: string): Promise<ReadonlyArray<readonly [Attributes, number | Recorded]> | undefined>
  /** The number, or the count of a histogram, of the one series with these attributes. */
  value(name: string, attributes?: Attributes): Promise<number | undefined>
  histogram(name: string, attributes?: Attributes): Promise<Recorded | undefined>
  [Symbol.asyncDispose](): Promise<void>
}

class Collector extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}

/** Starts recording. */
export function metered(options?: MetricsOptions): Metered {
  const reader = new Collector()
  const provider = new MeterProvider({ readers: [reader] })
  const meter = provider.getMeter('timebudget')
  const stop = recordMetrics(meter, options)

  const series: Metered['series'] = async (name) => {
    const { resourceMetrics } = await reader.collect()
    const metric = resourceMetrics.scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .find(({ descriptor }) => descriptor.name === name)
    if (metric === undefined) return undefined
    if (metric.dataPointType === DataPointType.HISTOGRAM)
      return metric.dataPoints.map(({ attributes, value: { count, sum = 0, buckets } }) => [
        attributes,
        { count, sum, boundaries: buckets.boundaries },
      ])
    if (metric.dataPointType === DataPointType.EXPONENTIAL_HISTOGRAM) return undefined
    return metric.dataPoints.map(({ attributes, value }) => [attributes, value])
  }
  const point = async (name: string, attributes: Attributes = {}): Promise<number | Recorded | undefined> => {
    const all = (await series(name)) ?? []
    return all.find(([each]) => Object.entries(attributes).every(([key, value]) => each[key] === value))?.[1]
  }
  return {
    meter,
    stop,
    series,
    async value(name, attributes) {
      const found = await point(name, attributes)
      return typeof found === 'object' ? found.count : found
    },
    async histogram(name, attributes) {
      const found = await point(name, attributes)
      return typeof found === 'object' ? found : undefined
    },
    async [Symbol.asyncDispose]() {
      stop()
      await provider.shutdown()
    },
  }
}
