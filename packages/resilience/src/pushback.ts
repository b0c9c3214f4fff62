import { isTimeBudgetError } from '@timebudget/core'
import {
  parseHttpDate,
  readGrpcPushback,
  readMilliseconds,
  readReset,
  readRetryAfter,
  type ReadValue,
} from './pushback-values.ts'
import { causesOf, hasMembers, type Unknowns } from './retry-causes.ts'

const demands: Readonly<Record<string, ReadValue>> = {
  'retry-after': readRetryAfter,
  'retry-after-ms': readMilliseconds,
  'x-ms-retry-after-ms': readMilliseconds,
  'grpc-retry-pushback-ms': readGrpcPushback,
}

// The header that says when a limit is lifted, and the one that says whether it was reached.
const limits: readonly (readonly [reset: string, remaining: string])[] = [
  ['ratelimit-reset', 'ratelimit-remaining'],
  ['x-ratelimit-reset', 'x-ratelimit-remaining'],
  ['x-rate-limit-reset', 'x-rate-limit-remaining'],
  ['x-ratelimit-reset-requests', 'x-ratelimit-remaining-requests'],
  ['x-ratelimit-reset-tokens', 'x-ratelimit-remaining-tokens'],
]

// Longer values are no numbers of anybody's.
const longestValue = 64

/**
 * The least wait, in milliseconds, that a peer or one of our own errors asks for before the next attempt; 0 if none, and
 * `Infinity` if there should not be one. What cannot be read asks for nothing. `epoch` is Unix epoch milliseconds.
 */
export function pushbackOf(failure: unknown, epoch: number): number {
  let least = 0
  for (const link of causesOf(failure)) {
    // ours say it in milliseconds; their `headers` round it up to seconds
    if (isTimeBudgetError(link)) least = Math.max(least, link.retryAfter ?? 0)
    else for (const headers of headersOf(link)) least = Math.max(least, readHeaders(headers, epoch))
  }
  return least
}

/** The headers that an answer or an error carries, by whatever name. */
export function headersOf(link: Unknowns): readonly Unknowns[] {
  const response = link['response']
  const all = [link['headers'], link['metadata'], hasMembers(response) ? response['headers'] : undefined]
  return all.filter(hasMembers)
}

/** All values of a header in a Headers, a Map, gRPC's Metadata or a plain object; `name` is in lower case. */
export function valuesOf(headers: Unknowns, name: string): readonly string[] {
  const value: unknown = typeof headers['get'] === 'function' ? headers['get'](name) : lookUp(headers, name)
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.flatMap((one) => {
    const text = typeof one === 'number' ? String(one) : one
    return typeof text === 'string' && text.length <= longestValue ? membersOf(text) : []
  })
}

/** What came twice is folded into one value; a date has a comma of its own. */
function membersOf(value: string): readonly string[] {
  const isDate = /^\s*[A-Z][a-z]{2,8},/.test(value)
  return (isDate ? [value] : value.split(',')).map((member) => member.trim())
}

function lookUp(headers: Unknowns, name: string): unknown {
  if (Object.hasOwn(headers, name)) return headers[name]
  for (const key of Object.keys(headers)) if (key.toLowerCase() === name) return headers[key]
  return undefined
}

function readHeaders(headers: Unknowns, epoch: number): number {
  // by the peer's own clock, if it says what that shows: ours may differ
  const [date] = valuesOf(headers, 'date')
  const now = (date === undefined ? undefined : parseHttpDate(date)) ?? epoch
  const demanded = Object.entries(demands).flatMap(([name, read]) =>
    valuesOf(headers, name).flatMap((value) => read(value, now) ?? []),
  )
  // a reset is only when the quota is renewed: Retry-After says better when to come again (draft-ietf-httpapi-ratelimit-headers)
  return Math.max(0, ...(demanded.length > 0 ? demanded : resets(headers, now)))
}

function resets(headers: Unknowns, now: number): readonly number[] {
  return limits.flatMap(([reset, remaining]) => {
    const left = valuesOf(headers, remaining)
    const isReached = left.length === 0 || left.some((value) => Number(value) === 0)
    return isReached ? valuesOf(headers, reset).flatMap((value) => readReset(value, now) ?? []) : []
  })
}
