import { expect, test } from 'vitest'
import { retryAfterOf } from '../src/retry-after.ts'

const now = Date.parse('2026-01-01T00:00:00Z')

test.each([
  [{ 'retry-after': '1' }, 1_000],
  [{ 'retry-after': '0.5' }, 500],
  [{ 'retry-after': '3600' }, 3_600_000],
  [{ 'retry-after-ms': '250', 'retry-after': '9' }, 250],
  [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, 30_000],
  [{ 'retry-after': 'Wed, 31 Dec 2025 23:59:00 GMT' }, 0],
  [{ 'retry-after-ms': 'soon', 'retry-after': '2' }, 2_000],
  [{ 'retry-after': '-5' }, undefined],
  [{ 'retry-after': '1e9' }, undefined],
  [{ 'retry-after': 'soon' }, undefined],
  [{ 'retry-after': '' }, undefined],
  [{}, undefined],
])('%j is %s ms', (headers, milliseconds) => {
  expect(retryAfterOf(new Headers(headers as Record<string, string>), now)).toBe(milliseconds)
})
