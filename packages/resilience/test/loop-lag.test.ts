import { type LoopLagged, loopLagged } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { afterEach, expect, test } from 'vitest'
import { watchLoopLag } from '../src/index.ts'

const unsubscribes: Array<() => void> = []

afterEach(() => {
  for (const unsubscribe of unsubscribes.splice(0)) unsubscribe()
})

function collect(): number[] {
  const lags: number[] = []
  unsubscribes.push(loopLagged.subscribe(({ lag }) => lags.push(lag)))
  return lags
}

function nextLag(): Promise<LoopLagged> {
  return new Promise((resolve) => {
    unsubscribes.push(loopLagged.subscribe(resolve))
  })
}

function blockLoop(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

function turns(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds)
  })
}

test('a blocked event loop is published once, with how long it was blocked', async () => {
  const lags = collect()
  using _watch = watchLoopLag({ interval: 200, threshold: 250 })
  const published = nextLag()
  // the monitor has begun to measure once it has ticked
  await turns(100)
  blockLoop(400)
  const { lag } = await published
  expect(lag).toBeGreaterThan(340)
  await turns(500)
  expect(lags.filter((seen) => seen > 340)).toEqual([lag])
})

test('a block that is over long before one looks is seen all the same', async () => {
  using _watch = watchLoopLag({ interval: 900, threshold: 250 })
  const published = nextLag()
  await turns(100)
  blockLoop(400)
  expect((await published).lag).toBeGreaterThan(340)
})

test('a block that ends at the moment one looks is seen, and published once', () => {
  const clock = new ManualClock()
  const lags = collect()
  using _watch = watchLoopLag({ clock, interval: 1_000, threshold: 5_000 })
  clock.advance(900)
  clock.block(6_100)
  clock.advance(0)
  expect(lags).toEqual([6_000])
  clock.advance(10_000)
  expect(lags).toEqual([6_000])
})

test('less than the threshold is not published', () => {
  const clock = new ManualClock()
  const lags = collect()
  using _watch = watchLoopLag({ clock, interval: 1_000, threshold: 5_000 })
  clock.block(5_999)
  clock.advance(0)
  expect(lags).toEqual([])
  clock.block(6_000)
  clock.advance(0)
  expect(lags).toEqual([5_000])
})

test('law 4: a watch that is stopped leaves no timer and publishes no more', () => {
  const clock = new ManualClock()
  const lags = collect()
  {
    using _watch = watchLoopLag({ clock, threshold: 0 })
    clock.advance(3_000)
    expect(lags).toHaveLength(3)
  }
  expect(clock.pendingTimers).toBe(0)
  clock.advance(3_000)
  expect(lags).toHaveLength(3)
})

test('law 6: unreadable options are refused by name', () => {
  expect(() => watchLoopLag({ threshold: -1 })).toThrow('threshold')
  expect(() => watchLoopLag({ interval: 'often' })).toThrow('interval')
  expect(() => watchLoopLag({ interval: 0 })).toThrow('interval')
  expect(() => watchLoopLag(JSON.parse('{"max":1}'))).toThrow('max: no such option')
})
