import { expect, test } from 'vitest'
import { percentilesOf } from '../src/probe/percentiles.ts'

test('a percentile is a value that was seen, the nearest by rank', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index)
  expect(percentilesOf(hundred)).toEqual({ count: 100, p50: 50, p95: 95, p99: 99, most: 100 })
  expect(percentilesOf([7])).toEqual({ count: 1, p50: 7, p95: 7, p99: 7, most: 7 })
  expect(percentilesOf([10, 2, 1])).toEqual({ count: 3, p50: 2, p95: 10, p99: 10, most: 10 })
  expect(percentilesOf([])).toBeUndefined()
})
