import {
  CancelledError,
  CircuitOpenError,
  ClientClosedError,
  ConnectTimeoutError,
  DeadlineExceededError,
  FirstTokenTimeoutError,
  BudgetTooSmallError,
  OperationTimeoutError,
  OverloadedError,
  ShutdownError,
  StreamStalledError,
  TotalTimeoutError,
  UpstreamError,
} from '@timebudget/core'
import { expect, test } from 'vitest'
import { judgeAnswer, judgeError } from '../src/retry-verdict.ts'
import { networkError } from './support/retrying.ts'

const allTime = { hadAllTime: true }
const shortTimeout = { hadAllTime: false }

/** What an error means, in one word. */
function meaning(error: unknown, facts = allTime): 'unsent' | 'sent' | 'final' {
  const { isRetryable, wasSent } = judgeError(error, facts)
  if (!isRetryable) return 'final'
  return wasSent ? 'sent' : 'unsent'
}

const fetchFailed = (cause: unknown): Error => new TypeError('fetch failed', { cause })

class APIConnectionTimeoutError extends Error {}

test.each([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CONNECT_TIMEOUT',
])('%s is known to come from before sending', (code) => {
  expect(meaning(networkError(code))).toBe('unsent')
  expect(meaning(fetchFailed(networkError(code)))).toBe('unsent')
  expect(meaning(new UpstreamError('retrieve failed', { cause: fetchFailed(networkError(code)) }))).toBe(
    'unsent',
  )
})

test.each([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ECONNABORTED',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'ERR_HTTP2_STREAM_ERROR',
])('%s may come from after it', (code) => {
  expect(meaning(networkError(code))).toBe('sent')
  expect(meaning(fetchFailed(networkError(code)))).toBe('sent')
})

test.each([
  ['a connect that timed out', networkError('ETIMEDOUT', { syscall: 'connect' })],
  ['all addresses of a host that timed out', Object.assign(new AggregateError([]), { code: 'ETIMEDOUT' })],
  ["got's limit for connecting", networkError('ETIMEDOUT', { name: 'TimeoutError', event: 'connect' })],
  [
    "got's limit for the TLS handshake",
    networkError('ETIMEDOUT', { name: 'TimeoutError', event: 'secureConnect' }),
  ],
  [
    'a reset in the TLS handshake',
    Object.assign(
      new Error('Client network socket disconnected before secure TLS connection was established'),
      {
        code: 'ECONNRESET',
      },
    ),
  ],
  [
    'a stream that the server never looked at',
    Object.assign(new Error('Stream closed with error code NGHTTP2_REFUSED_STREAM'), {
      code: 'ERR_HTTP2_STREAM_ERROR',
    }),
  ],
  ['our own timeout for connecting', new ConnectTimeoutError('no connection')],
  [
    'a gRPC channel without a connection',
    { code: 14, details: 'No connection established. Last error: ECONNREFUSED', metadata: {} },
  ],
])('%s is known to come from before sending', (_, error) => {
  expect(meaning(error)).toBe('unsent')
})

test.each([
  ["got's limit for a request", networkError('ETIMEDOUT', { name: 'TimeoutError', event: 'request' })],
  ['AbortSignal.timeout', new DOMException('timed out', 'TimeoutError')],
  ["ky's TimeoutError", Object.assign(new Error('timed out'), { name: 'TimeoutError' })],
  ["an SDK's timeout", new APIConnectionTimeoutError('Request timed out.')],
  ["axios's network error without a cause that is known", networkError('ERR_NETWORK')],
  ['an operation within that took too long', new OperationTimeoutError('rerank took too long')],
  ['no first token', new FirstTokenTimeoutError('no token')],
  ['a stream that stalled', new StreamStalledError('silence')],
  ['a total that was exceeded', new TotalTimeoutError('too long')],
  ['an UpstreamError of the user without a cause', new UpstreamError('the model answered nonsense')],
  ['UNAVAILABLE', { code: 14, details: 'goaway', metadata: {} }],
  ['DEADLINE_EXCEEDED of a shorter timeout', { code: 4, details: 'Deadline exceeded', metadata: {} }],
  ['RESOURCE_EXHAUSTED with pushback', { code: 8, metadata: new Map([['grpc-retry-pushback-ms', '10']]) }],
  [
    'a gRPC error that our own timeout caused',
    Object.assign(new Error('x'), { code: 4, metadata: {}, cause: new OperationTimeoutError('x') }),
  ],
])('%s may pass', (_, error) => {
  expect(meaning(error)).toBe('sent')
})

test.each([
  ['a TypeError', new TypeError('x is undefined')],
  ['an error that nobody knows', new Error('boom')],
  ['an URL that cannot be parsed', fetchFailed(networkError('ERR_INVALID_URL'))],
  ['a certificate that has expired', fetchFailed(networkError('CERT_HAS_EXPIRED'))],
  ['abort()', new DOMException('aborted', 'AbortError')],
  ["abort('stop')", 'stop'],
  ['nothing', undefined],
  ["axios's CanceledError", networkError('ERR_CANCELED')],
  ["undici's abort", networkError('UND_ERR_ABORTED')],
  ["got's AbortError", networkError('ERR_ABORTED', { name: 'AbortError' })],
  ['CANCELLED of gRPC', { code: 1, metadata: {} }],
  ['INVALID_ARGUMENT of gRPC', { code: 3, metadata: {} }],
  ['RESOURCE_EXHAUSTED without pushback', { code: 8, metadata: {} }],
  ['a client that left', new ClientClosedError('gone')],
  ['a cancellation', new CancelledError('stop')],
  ['a cancellation that a library has wrapped', new Error('x', { cause: new CancelledError('stop') })],
  ['the end of a deadline', new DeadlineExceededError('over')],
  ['a process that shuts down', new ShutdownError('bye')],
  ['a floor', new BudgetTooSmallError('too little')],
  ['a queue of our own that is full', new OverloadedError('full', { retryAfter: 10 })],
  ['a breaker of our own that is open', new CircuitOpenError('open', { retryAfter: 10 })],
  [
    'an UpstreamError for a reason that does not pass',
    new UpstreamError('x', { cause: networkError('CERT_HAS_EXPIRED') }),
  ],
])('%s is final', (_, error) => {
  expect(meaning(error)).toBe('final')
})

test('what this process refused by itself is known not to have been sent', () => {
  expect(judgeError(new CircuitOpenError('open'), allTime)).toEqual({ isRetryable: false, wasSent: false })
})

const passing = [408, 429, 500, 502, 503, 504]

test.each(passing)('the status %i may pass, on an error of any client and as an answer', (status) => {
  for (const error of [
    { status },
    { statusCode: status },
    { response: { status } },
    { response: { statusCode: status } },
  ])
    expect(meaning(Object.assign(new Error('x'), error))).toBe('sent')
  expect(judgeAnswer(new Response(null, { status }), allTime)).toEqual({ isRetryable: true, wasSent: true })
  expect(judgeAnswer({ statusCode: status, headers: {} }, allTime)).toMatchObject({ isRetryable: true })
})

test.each([400, 401, 403, 404, 409, 410, 422])('the status %i does not', (status) => {
  expect(meaning(Object.assign(new Error('x'), { status, code: 'ERR_BAD_REQUEST' }))).toBe('final')
  expect(judgeAnswer(new Response(null, { status }), allTime)).toBeUndefined()
})

test('a status of our own errors is not one that somebody answered', () => {
  const wrapped = Object.assign(
    new UpstreamError('x', { cause: Object.assign(new Error('x'), { status: 404 }) }),
  )
  expect(meaning(wrapped)).toBe('final')
})

test('501 is a failure, but not one that passes', () => {
  expect(judgeAnswer(new Response(null, { status: 501 }), allTime)).toMatchObject({ isRetryable: false })
})

test('a result with a status and no headers is no answer of HTTP', () => {
  expect(judgeAnswer({ status: 503 }, allTime)).toBeUndefined()
  expect(judgeAnswer({ status: 'failed', headers: {} }, allTime)).toBeUndefined()
  expect(judgeAnswer(503, allTime)).toBeUndefined()
})

test.each(['deadline_exceeded', 'short_circuited'])(
  'a peer that had all our time and says %s leaves none for another attempt',
  (outcome) => {
    const headers = { 'x-deadline-outcome': outcome }
    expect(judgeAnswer(new Response(null, { status: 504, headers }), allTime)).toMatchObject({
      isRetryable: false,
    })
    expect(judgeAnswer(new Response(null, { status: 504, headers }), shortTimeout)).toMatchObject({
      isRetryable: true,
    })
    const thrown = Object.assign(new Error('504'), { response: { status: 504, headers } })
    expect(meaning(thrown, allTime)).toBe('final')
    expect(meaning(thrown, shortTimeout)).toBe('sent')
    const grpc = { code: 4, metadata: new Map(Object.entries(headers)) }
    expect(meaning(grpc, allTime)).toBe('final')
    expect(meaning(grpc, shortTimeout)).toBe('sent')
  },
)

test("a peer's own timeout, and words that nobody knows, are an ordinary 504", () => {
  for (const outcome of ['operation_timeout', 'tired'])
    expect(
      judgeAnswer(new Response(null, { status: 504, headers: { 'x-deadline-outcome': outcome } }), allTime),
    ).toMatchObject({ isRetryable: true })
})

test('a peer that says it should not be retried is not', () => {
  const answer = new Response(null, { status: 500, headers: { 'x-should-retry': 'false' } })
  expect(judgeAnswer(answer, allTime)).toMatchObject({ isRetryable: false })
})
