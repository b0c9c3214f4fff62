import { describe, expect, test } from 'vitest'
import { ManualClock } from '@timebudget/core/testing'
import { Latency, LatencyBook, type LatencySnapshot } from '../src/index.ts'
import { longText } from './support/long-text.ts'
import { logNormal, seededRandom } from './support/seeded-random.ts'

function minuteOf(options: { minSamples?: number } = {}): { latency: Latency; clock: ManualClock } {
  const clock = new ManualClock()
  return { latency: new Latency({ window: '60s', clock, ...options }), clock }
}

function recordEach(latency: Latency, values: Iterable<number>): void {
  for (const value of values) latency.record(value)
}

const oneToHundred = Array.from({ length: 100 }, (_, index) => index + 1)

describe('what is learned', () => {
  test('quantiles are right to 1 %', () => {
    const { latency } = minuteOf()
    recordEach(latency, oneToHundred)
    expect(latency.quantile(0.5)).toBeCloseTo(50, -0.2)
    expect(latency.quantile(0.95)).toBeGreaterThan(94)
    expect(latency.quantile(0.95)).toBeLessThan(96)
    expect(latency.quantile(0)).toBeCloseTo(1, 1)
    expect(latency.quantile(1)).toBeLessThan(101.1)
  })

  test('the chance of finishing in time is the share that did', () => {
    const { latency } = minuteOf()
    recordEach(latency, oneToHundred)
    expect(latency.chance(0.5)).toBe(0)
    expect(latency.chance(40)).toBeCloseTo(0.4, 5)
    expect(latency.chance(200)).toBe(1)
    expect(latency.chance(Infinity)).toBe(1)
  })

  test('a quantile and its chance agree', () => {
    const { latency } = minuteOf()
    recordEach(latency, oneToHundred)
    for (const share of [0.05, 0.3, 0.5, 0.95, 1]) {
      expect(latency.chance(latency.quantile(share) ?? 0)).toBeGreaterThanOrEqual(share - 1e-9)
    }
  })

  test('nothing is said of fewer calls than minSamples', () => {
    const { latency } = minuteOf({ minSamples: 5 })
    recordEach(latency, [10, 10, 10, 10])
    expect(latency.quantile(0.5)).toBeUndefined()
    expect(latency.chance(10)).toBeUndefined()
    latency.record(10)
    expect(latency.quantile(0.5)).toBeCloseTo(10, 0)
  })

  test('what is no duration is ignored, and extreme ones cost no more memory than others', () => {
    const { latency } = minuteOf({ minSamples: 1 })
    recordEach(latency, [Number.NaN, -1, Infinity, -Infinity])
    expect(latency.samples).toBe(0)
    expect(latency.quantile(0.5)).toBeUndefined()
    recordEach(latency, [0, Number.MIN_VALUE, Number.MAX_VALUE])
    expect(latency.samples).toBe(3)
    expect(latency.snapshot().done.bins.length).toBeLessThan(1500)
    expect(latency.chance(Number.NaN)).toBeUndefined()
  })

  test('a new value shows within a thirty-second more calls', () => {
    const { latency } = minuteOf()
    recordEach(
      latency,
      Array.from({ length: 320 }, () => 10),
    )
    expect(latency.quantile(1)).toBeCloseTo(10, 0)
    recordEach(
      latency,
      Array.from({ length: 10 }, () => 500),
    )
    expect(latency.quantile(1)).toBeGreaterThan(490)
  })
})

describe('calls that were cut off', () => {
  test('count as ones that take longer than that', () => {
    const { latency } = minuteOf()
    for (let call = 0; call < 50; call += 1) {
      latency.record(100)
      latency.record(200, { cut: true })
    }
    expect(latency.chance(150)).toBeCloseTo(0.5, 5)
    expect(latency.quantile(0.5)).toBeCloseTo(100, -0.5)
    expect(latency.quantile(0.95)).toBeGreaterThan(195)
  })

  test('early cuts do not make the work look short', () => {
    const { latency } = minuteOf()
    // half of all calls may take 1000 ms and do; the other half are cut at 10 ms
    for (let call = 0; call < 50; call += 1) {
      latency.record(1000)
      latency.record(10, { cut: true })
    }
    expect(latency.chance(500)).toBe(0)
    expect(latency.quantile(0.5)).toBeGreaterThan(980)
  })

  test('nothing is known of more time than calls were given', () => {
    const { latency } = minuteOf()
    for (let call = 0; call < 50; call += 1) latency.record(800, { cut: true })
    expect(latency.chance(790)).toBe(0)
    expect(latency.chance(5000)).toBeUndefined()
    expect(latency.quantile(0.05)).toBeCloseTo(800, -1.2)
  })

  test('one call that was given more time than the others is too few to go by', () => {
    const { latency } = minuteOf()
    for (let call = 0; call < 100; call += 1) latency.record(800, { cut: true })
    latency.record(10_000, { cut: true })
    expect(latency.chance(5000)).toBeUndefined()
    expect(latency.quantile(0.5)).toBeLessThan(820)
  })

  test('a few cuts do not hide how the others went on', () => {
    const { latency } = minuteOf()
    recordEach(latency, oneToHundred)
    latency.record(1, { cut: true })
    expect(latency.quantile(1)).toBeGreaterThan(98)
    expect(latency.chance(1000)).toBe(1)
  })

  test('with mixed budgets, most of them 150 ms, a true P95 of 316 ms is learned within 10 %', () => {
    const { latency } = minuteOf()
    const random = seededRandom(1)
    const budgets = [150, 150, 150, 150, 300, 600, 1200]
    for (let call = 0; call < 4000; call += 1) {
      // log-normal: median 142 ms, P95 142 * e^(1.645 * 0.486) = 316 ms
      const takes = logNormal(random, { median: 142, sigma: 0.486 })
      const budget = budgets[Math.floor(random() * budgets.length)] ?? 150
      latency.record(Math.min(takes, budget), { cut: takes > budget })
    }
    expect(latency.quantile(0.95)).toBeGreaterThan(316 * 0.9)
    expect(latency.quantile(0.95)).toBeLessThan(316 * 1.1)
  })
})

describe('the window', () => {
  test('forgets what is older, and nothing that is younger than five sixths of it', () => {
    const { latency, clock } = minuteOf({ minSamples: 1 })
    latency.record(100)
    clock.advance(50_000)
    expect(latency.samples).toBe(1)
    expect(latency.quantile(0.5)).toBeCloseTo(100, -0.5)
    clock.advance(10_000)
    expect(latency.samples).toBe(0)
    expect(latency.quantile(0.5)).toBeUndefined()
    latency.record(7)
    expect(latency.samples).toBe(1)
    expect(latency.quantile(1)).toBeCloseTo(7, 0)
  })

  test('forgets the older calls and keeps the younger ones', () => {
    const { latency, clock } = minuteOf()
    for (const value of [1, 2, 3]) {
      latency.record(value)
      clock.advance(20_000)
    }
    expect(latency.samples).toBe(2)
    latency.record(4)
    expect(latency.samples).toBe(3)
  })

  test('forgets by the monotonic clock: a wall clock set back changes nothing', () => {
    const { latency, clock } = minuteOf({ minSamples: 1 })
    latency.record(100)
    clock.shiftEpoch(-3_600_000)
    clock.advance(61_000)
    expect(latency.samples).toBe(0)
  })

  test('holds no timer', () => {
    const { latency, clock } = minuteOf()
    recordEach(latency, oneToHundred)
    expect(latency.quantile(0.5)).toBeDefined()
    expect(clock.pendingTimers).toBe(0)
  })
})

describe('snapshots', () => {
  test('pass through JSON and say the same elsewhere', () => {
    const { latency } = minuteOf()
    recordEach(latency, oneToHundred)
    latency.record(60, { cut: true })
    const other = minuteOf().latency
    other.merge(JSON.parse(JSON.stringify(latency.snapshot())) as LatencySnapshot)
    expect(other.samples).toBe(101)
    for (const share of [0.05, 0.5, 0.95]) expect(other.quantile(share)).toBe(latency.quantile(share))
    expect(other.snapshot()).toEqual(latency.snapshot())
  })

  test('of nothing are snapshots too', () => {
    const { latency } = minuteOf()
    latency.merge(minuteOf().latency.snapshot())
    expect(latency.samples).toBe(0)
    latency.record(5)
    expect(latency.samples).toBe(1)
  })

  test.each([
    undefined,
    null,
    7,
    'text',
    [],
    {},
    { version: 2, accuracy: 0.01, done: { offset: 1, bins: [1] }, cut: { offset: 1, bins: [] } },
    { version: 1, accuracy: 0.02, done: { offset: 1, bins: [1] }, cut: { offset: 1, bins: [] } },
    { version: 1, accuracy: 0.01, done: { offset: 1, bins: [1] } },
    { version: 1, accuracy: 0.01, done: { offset: 1.5, bins: [1] }, cut: { offset: 1, bins: [] } },
    { version: 1, accuracy: 0.01, done: { offset: 1, bins: [-1] }, cut: { offset: 1, bins: [] } },
    { version: 1, accuracy: 0.01, done: { offset: 1, bins: [0.5] }, cut: { offset: 1, bins: [] } },
    { version: 1, accuracy: 0.01, done: { offset: 1, bins: [1e300] }, cut: { offset: 1, bins: [] } },
    { version: 1, accuracy: 0.01, done: { offset: 1, bins: ['1'] }, cut: { offset: 1, bins: [] } },
    { version: 1, accuracy: 0.01, done: { offset: 1, bins: { length: 1 } }, cut: { offset: 1, bins: [] } },
    { version: 1, accuracy: 0.01, done: { offset: -1e9, bins: [1] }, cut: { offset: 1, bins: [] } },
    {
      version: 1,
      accuracy: 0.01,
      done: { offset: 0, bins: Array.from({ length: 5000 }, () => 1) },
      cut: { offset: 1, bins: [] },
    },
  ])('what is none is ignored (%#)', (garbage) => {
    const { latency } = minuteOf()
    latency.merge(garbage as unknown as LatencySnapshot)
    latency.hear('peer', garbage)
    expect(latency.samples).toBe(0)
  })

  test('heard from one source replace each other, and are forgotten after a window', () => {
    const { latency, clock } = minuteOf({ minSamples: 1 })
    const peer = minuteOf().latency
    recordEach(peer, [30, 30])
    latency.hear('peer', peer.snapshot())
    latency.hear('peer', peer.snapshot())
    expect(latency.samples).toBe(2)
    expect(latency.quantile(0.5)).toBeCloseTo(30, 0)
    expect(latency.snapshot().done.bins).toEqual([])
    clock.advance(61_000)
    expect(latency.samples).toBe(0)
    expect(latency.quantile(0.5)).toBeUndefined()
  })

  test('are heard from 64 sources at most', () => {
    const { latency } = minuteOf()
    const peer = minuteOf().latency
    peer.record(30)
    for (let source = 0; source < 200; source += 1) latency.hear(`peer ${source}`, peer.snapshot())
    expect(latency.samples).toBe(64)
  })
})

describe('a latency a key', () => {
  test('is the same one for the same key', () => {
    const book = new LatencyBook({ minSamples: 1 })
    book.of('small').record(10)
    book.of('large').record(900)
    expect(book.of('small').quantile(0.5)).toBeCloseTo(10, 0)
    expect(book.of('large').samples).toBe(1)
  })

  test('is forgotten when others were used more lately', () => {
    const book = new LatencyBook({ maxKeys: 2 })
    for (const key of ['a', 'b', 'a', 'c']) book.of(key).record(10)
    expect(book.size).toBe(2)
    expect(book.of('a').samples).toBe(2)
    expect(book.of('b').samples).toBe(0)
  })

  test('costs a fixed amount of memory, however many keys come', () => {
    const collect = globalThis.gc
    if (collect === undefined) throw new Error('run with --expose-gc')
    const clock = new ManualClock()
    const random = seededRandom(2)
    const book = new LatencyBook({ clock })
    collect()
    const before = process.memoryUsage().heapUsed
    for (let key = 0; key < 10_000; key += 1) {
      const latency = book.of(longText(`key ${key} `))
      for (let call = 0; call < 20; call += 1) {
        latency.record(logNormal(random, { median: 200, sigma: 0.5 }), { cut: call % 5 === 0 })
      }
      latency.quantile(0.95)
    }
    collect()
    expect(book.size).toBe(1000)
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(32 * 2 ** 20)
  })
})

test.each<[object, RegExp]>([
  [{ window: 'soon' }, /window/],
  [{ window: 0 }, /window/],
  [{ minSamples: 0 }, /minSamples/],
  [{ minSamples: 1.5 }, /minSamples/],
  [{ windows: 1 }, /windows: no such option/],
])('an option that cannot be read is named: %j', (options, message) => {
  expect(() => new Latency(options)).toThrow(message)
  expect(() => new LatencyBook(options)).toThrow(message)
  expect(() => new LatencyBook({ maxKeys: 0 })).toThrow(/maxKeys/)
})
