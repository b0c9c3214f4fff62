import { expect } from 'vitest'
import { limits, type Mode, type Observation, type ScenarioName } from './scenarios.ts'
import type { Surface } from './surface.ts'

type Expectation = (seen: Observation, surface: Pick<Surface, 'numbersRetries'>) => void

/** What a busy machine needs on top of a limit. */
const leeway = 4_000

function failed(
  seen: Observation,
  { outcome, code, after }: { readonly outcome: string; readonly code: string; readonly after: number },
): void {
  expect(seen).toMatchObject({ outcome, code, complete: false, ledger: outcome, records: 1 })
  expect(seen.elapsed).toBeGreaterThan(after - 5)
  expect(seen.elapsed).toBeLessThan(after + leeway)
}

function succeeded(seen: Observation, text?: string): void {
  expect(seen).toMatchObject({ outcome: 'ok', complete: true, ledger: 'ok', records: 1, threw: false })
  if (text !== undefined) expect(seen.text).toBe(text)
}

/** The provider's connection closed at once, and no further token was made. */
function closedAtOnce(seen: Observation): void {
  expect(seen.closedAfter).toBeLessThan(100)
  expect(seen.tokensSent).toBeLessThan(20)
  expect(seen.requests).toBe(1)
}

const firstTokenTimeout = {
  outcome: 'first_token_timeout',
  code: 'FIRST_TOKEN_TIMEOUT',
  after: limits.firstToken,
}
const totalTimeout = { outcome: 'total_timeout', code: 'TOTAL_TIMEOUT', after: limits.total }
const stalled = { outcome: 'stream_stalled', code: 'STREAM_STALLED', after: limits.idle }
const deadlineExceeded = { outcome: 'deadline_exceeded', code: 'DEADLINE_EXCEEDED' }
const interrupted = { outcome: 'upstream_error', code: 'UPSTREAM_ERROR', after: 0 }
const cancelled = { outcome: 'cancelled', complete: false, ledger: 'cancelled', records: 1 }

/** What a scenario must look like; scenarios that an answer without a stream has no part in are left out for it. */
export const expectations: Readonly<Record<ScenarioName, { readonly [M in Mode]?: Expectation }>> = {
  'a provider that never answers': {
    stream: (seen) => failed(seen, firstTokenTimeout),
    // it has no first token before its end
    whole: (seen) => failed(seen, totalTimeout),
  },
  'five tokens, then silence': {
    stream(seen) {
      failed(seen, stalled)
      expect(seen).toMatchObject({ text: 'word word word word word', chunks: 5 })
    },
    whole: (seen) => failed(seen, stalled),
  },
  'comments for ever': {
    stream: (seen) => failed(seen, firstTokenTimeout),
    whole: (seen) => failed(seen, totalTimeout),
  },
  'deltas that hold nothing': { stream: (seen) => failed(seen, firstTokenTimeout) },
  'a long answer of steady tokens': {
    stream: (seen) => succeeded(seen, Array.from({ length: 40 }, () => 'word').join(' ')),
    whole: (seen) => succeeded(seen, Array.from({ length: 40 }, () => 'word').join(' ')),
  },
  'reasoning and arguments of tools alone': {
    stream(seen) {
      succeeded(seen, '')
      expect(seen.chunks).toBeGreaterThanOrEqual(10)
    },
  },
  'a reader slower than the idle limit': {
    stream(seen) {
      succeeded(seen)
      expect(seen.text).toHaveLength(8 * 40_000)
      expect(seen.elapsed).toBeGreaterThan(1_000)
    },
  },
  'a connection that is never made': {
    stream: (seen) =>
      failed(seen, { outcome: 'connect_timeout', code: 'CONNECT_TIMEOUT', after: limits.connect }),
    whole: (seen) =>
      failed(seen, { outcome: 'connect_timeout', code: 'CONNECT_TIMEOUT', after: limits.connect }),
  },
  'a deadline before any limit': {
    stream: (seen) => failed(seen, { ...deadlineExceeded, after: 150 }),
    whole: (seen) => failed(seen, { ...deadlineExceeded, after: 150 }),
  },
  'a deadline in the middle': {
    stream(seen) {
      failed(seen, { ...deadlineExceeded, after: 800 })
      expect(seen.tokensSent).toBeLessThan(100)
    },
    whole: (seen) => failed(seen, { ...deadlineExceeded, after: 800 }),
  },
  'a last event on a connection that stays open': {
    stream(seen) {
      succeeded(seen, 'Good to hear from you.')
      expect(seen.elapsed).toBeLessThan(leeway)
    },
  },
  'an end without the last event': {
    stream: (seen) => failed(seen, interrupted),
    whole: (seen) => failed(seen, interrupted),
  },
  'a connection that is closed half way': {
    stream: (seen) => failed(seen, interrupted),
    whole: (seen) => failed(seen, interrupted),
  },
  'an error within the stream': {
    stream: (seen) => expect(seen).toMatchObject({ ...interruptedRecord, requests: 1 }),
  },
  'a failing provider, and an SDK left to its own retries': {
    stream: retriedByNobody,
    whole: retriedByNobody,
  },
  'an answer that is split anywhere': {
    stream: (seen) => succeeded(seen, 'grüß dich 你好 👋🏽'),
    whole: (seen) => succeeded(seen, 'grüß dich 你好 👋🏽'),
  },
  'a user who stops': {
    stream(seen) {
      expect(seen).toMatchObject({ ...cancelled, code: 'CANCELLED' })
      closedAtOnce(seen)
    },
    whole(seen) {
      expect(seen).toMatchObject({ ...cancelled, code: 'CANCELLED' })
      closedAtOnce(seen)
    },
  },
  'a client that goes away': {
    stream(seen) {
      expect(seen).toMatchObject({ ...cancelled, outcome: 'client_closed', ledger: 'client_closed' })
      closedAtOnce(seen)
    },
    whole(seen) {
      expect(seen).toMatchObject({ ...cancelled, outcome: 'client_closed', ledger: 'client_closed' })
      closedAtOnce(seen)
    },
  },
  'a reader that breaks off': {
    stream(seen) {
      expect(seen).toMatchObject({ ...cancelled, threw: false })
      closedAtOnce(seen)
    },
  },
}

const interruptedRecord = { outcome: 'upstream_error', complete: false, ledger: 'upstream_error', records: 1 }

function retriedByNobody(seen: Observation, { numbersRetries }: Pick<Surface, 'numbersRetries'>): void {
  expect(seen).toMatchObject({ outcome: 'upstream_error', complete: false, threw: true })
  if (numbersRetries) expect(seen.requests).toBe(1)
}
