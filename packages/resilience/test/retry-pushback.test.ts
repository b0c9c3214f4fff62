import { OverloadedError, UpstreamError } from '@timebudget/core'
import { expect, test } from 'vitest'
import { pushbackOf } from '../src/pushback.ts'

const epoch = Date.UTC(2026, 5, 1, 12, 0, 0)

/** What an answer with these headers asks for. */
const asked = (headers: Record<string, string>): number => pushbackOf(new Response(null, { headers }), epoch)

test.each([
  ['retry-after', '3', 3_000],
  ['retry-after', '1.5', 1_500],
  ['retry-after', '0', 0],
  ['retry-after', '86400', 86_400_000],
  ['retry-after', 'Mon, 01 Jun 2026 12:00:07 GMT', 7_000],
  ['retry-after', 'Monday, 01-Jun-26 12:00:07 GMT', 7_000],
  ['retry-after', 'Mon Jun  1 12:00:07 2026', 7_000],
  ['retry-after', 'Mon, 01 Jun 2026 11:00:00 GMT', 0],
  ['retry-after-ms', '150', 150],
  ['x-ms-retry-after-ms', '20.5', 20.5],
  ['ratelimit-reset', '30', 30_000],
  ['x-ratelimit-reset', '1.25', 1_250],
  ['x-ratelimit-reset', String(epoch / 1_000 + 42), 42_000],
  ['x-ratelimit-reset', String(epoch / 1_000 - 42), 0],
  ['x-rate-limit-reset', '2', 2_000],
  ['x-ratelimit-reset-requests', '1s', 1_000],
  ['x-ratelimit-reset-requests', '120ms', 120],
  ['x-ratelimit-reset-tokens', '6m0s', 360_000],
  ['x-ratelimit-reset-tokens', '1h2m3.5s', 3_723_500],
  ['grpc-retry-pushback-ms', '250', 250],
])('%s: %s asks for a wait', (name, value, wait) => {
  expect(asked({ [name]: value })).toBe(wait)
})

test.each([
  ['retry-after', 'soon'],
  ['retry-after', '-5'],
  ['retry-after', '1e9'],
  ['retry-after', '0x10'],
  ['retry-after', '12 apples'],
  ['retry-after', '2030'.padEnd(5_000, '0')],
  ['retry-after', 'Mon, 01 Foo 2026 12:00:07 GMT'],
  ['retry-after', 'Mon, 01 Jun 2026 12:00:07 PST'],
  ['retry-after-ms', '1s'],
  ['ratelimit-reset', 'limit=100'],
  ['x-ratelimit-reset-tokens', '6 minutes'],
  ['x-ratelimit-reset-tokens', '6mm'],
  ['x-ratelimit-reset-tokens', ''],
])('%s: %s cannot be read and asks for nothing', (name, value) => {
  expect(asked({ [name]: value })).toBe(0)
})

test.each(['-1', 'never', '1.5'])('grpc-retry-pushback-ms: %s forbids to retry', (value) => {
  expect(asked({ 'grpc-retry-pushback-ms': value })).toBe(Infinity)
})

test('of several demands the longest counts', () => {
  expect(asked({ 'retry-after': '1', 'retry-after-ms': '1500' })).toBe(1_500)
  expect(asked({ 'retry-after': '2', 'retry-after-ms': '1500' })).toBe(2_000)
  expect(asked({ 'retry-after': '2, 7' })).toBe(7_000)
})

test('Retry-After says better when to come again than the reset of a quota', () => {
  expect(asked({ 'retry-after': '1', 'ratelimit-reset': '60' })).toBe(1_000)
})

test('the reset of a quota of which something is left does not matter', () => {
  expect(asked({ 'x-ratelimit-remaining-tokens': '500', 'x-ratelimit-reset-tokens': '6m0s' })).toBe(0)
  expect(asked({ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '2s' })).toBe(2_000)
})

test("a date is read by the peer's own clock, where it says what that shows", () => {
  const anHourLater = {
    date: 'Mon, 01 Jun 2026 13:00:00 GMT',
    'retry-after': 'Mon, 01 Jun 2026 13:00:03 GMT',
  }
  expect(asked(anHourLater)).toBe(3_000)
})

test.each([
  ['a plain object', { headers: { 'Retry-After': '3' } }],
  ['a list of values', { headers: { 'retry-after': ['1', '3'] } }],
  ['a number', { headers: { 'retry-after': 3 } }],
  ['a Headers', { headers: new Headers({ 'retry-after': '3' }) }],
  ['a Map', { headers: new Map([['retry-after', '3']]) }],
  ['the response of an axios or got error', { response: { status: 429, headers: { 'retry-after': '3' } } }],
  [
    'Metadata of gRPC',
    { code: 14, metadata: { get: (name: string) => (name === 'retry-after' ? ['3'] : []) } },
  ],
  ['a cause', { cause: { cause: { headers: { 'retry-after': '3' } } } }],
  [
    'a cause of our error',
    new UpstreamError('retrieve failed', { cause: { headers: { 'retry-after': '3' } } }),
  ],
])('the demand is found in %s', (_, failure) => {
  expect(pushbackOf(failure, epoch)).toBe(3_000)
})

test('our own errors say it to the millisecond', () => {
  expect(pushbackOf(new OverloadedError('the queue is full', { retryAfter: 150 }), epoch)).toBe(150)
})

test.each([
  undefined,
  null,
  'stop',
  7,
  {},
  { headers: null },
  { headers: 'retry-after: 3' },
  { response: 3 },
])('nothing is asked for by %s', (failure) => {
  expect(pushbackOf(failure, epoch)).toBe(0)
})

test('causes that bite their tail are no endless work', () => {
  const error: { cause?: unknown; headers: object } = { headers: { 'retry-after': '1' } }
  error.cause = error
  expect(pushbackOf(error, epoch)).toBe(1_000)
})
