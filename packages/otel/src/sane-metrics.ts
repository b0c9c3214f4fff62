import type { Attributes, Meter } from '@opentelemetry/api'

/** What a counter is made of. */
export interface CounterShape {
  readonly description: string
  readonly unit: string
  /** Attributes of the series that are there, at 0, from the start: `rate()` does not see the step from nothing to 1. */
  readonly zeros?: readonly Attributes[]
}

/** What a histogram is made of. */
export interface HistogramShape {
  readonly description: string
  readonly unit: string
  readonly buckets: readonly number[]
}

/** Takes one measurement; one that is negative or no finite number is dropped. */
export type Measure = (value: number, attributes?: Attributes) => void

/**
 * Makes instruments that take nothing negative or infinite: an SDK warns of the one for each measurement, and the other
 * spoils a sum for ever.
 */
export class SaneMeter {
  readonly #meter: Meter

  constructor(meter: Meter) {
    this.#meter = meter
  }

  counter(name: string, { zeros = [], ...shape }: CounterShape): Measure {
    const counter = this.#meter.createCounter(name, shape)
    for (const attributes of zeros) counter.add(0, attributes)
    return function count(value, attributes) {
      if (isSane(value)) counter.add(value, attributes)
    }
  }

  histogram(name: string, { buckets, ...shape }: HistogramShape): Measure {
    const advice = { explicitBucketBoundaries: [...buckets] }
    const histogram = this.#meter.createHistogram(name, { ...shape, advice })
    return function record(value, attributes) {
      if (isSane(value)) histogram.record(value, attributes)
    }
  }

  /** A histogram that is told milliseconds, and gives away seconds. */
  duration(name: string, shape: Omit<HistogramShape, 'unit'>): Measure {
    const record = this.histogram(name, { ...shape, unit: 's' })
    return function recordDuration(milliseconds, attributes) {
      record(milliseconds / 1000, attributes)
    }
  }

  gauge(name: string, shape: Omit<CounterShape, 'zeros'>): Measure {
    const gauge = this.#meter.createGauge(name, shape)
    return function set(value, attributes) {
      if (isSane(value)) gauge.record(value, attributes)
    }
  }

  /** Something that goes up and down by one; it is left at 0 once `clear` was called. */
  level(name: string, shape: Omit<CounterShape, 'zeros'>): Level {
    const counter = this.#meter.createUpDownCounter(name, shape)
    let level = 0
    const move = (by: number): void => {
      level += by
      counter.add(by)
    }
    move(0)
    return { up: () => move(1), down: () => move(-1), clear: () => move(-level) }
  }

  /** Asks `read` for the values of now whenever they are collected, until the returned function is called. */
  observe(
    name: string,
    shape: Omit<CounterShape, 'zeros'>,
    read: () => Iterable<readonly [number, Attributes]>,
  ): () => void {
    const gauge = this.#meter.createObservableGauge(name, shape)
    const callback: Parameters<typeof gauge.addCallback>[0] = (result) => {
      for (const [value, attributes] of read()) if (Number.isFinite(value)) result.observe(value, attributes)
    }
    gauge.addCallback(callback)
    return function unobserve() {
      gauge.removeCallback(callback)
    }
  }
}

/** What `SaneMeter.level` gives. */
export interface Level {
  up(): void
  down(): void
  clear(): void
}

function isSane(value: number): boolean {
  return value >= 0 && value < Infinity
}
