import { type Clock, type Duration, parseDuration, systemClock } from '@timebudget/core'
import type { ResumeStore } from './resume/store.ts'

/** What `sse()` takes; every option may be left out. */
export interface StreamOptions {
  /** Silence after which a sign of life is sent; `'3s'`, `null` for none. */
  readonly heartbeat?: Duration | null | undefined
  /** How long a client is told to wait before it connects again. */
  readonly retry?: Duration | undefined
  /** Keeps the work, and what it has said, when the connection is lost: a store, or one with the stream's own settings. */
  readonly resume?: ResumeStore | ResumeOptions | undefined
  /** Where time comes from; the process's own clock. */
  readonly clock?: Clock | undefined
}

/** How a stream can be taken up again. */
export interface ResumeOptions {
  readonly store: ResumeStore
  /** What the work may take, whatever becomes of its request; what the request has left, else `'5m'`. */
  readonly budget?: Duration | undefined
  /** Ends the work when it aborts, such as the signal of a shutdown. */
  readonly signal?: AbortSignal | undefined
  /** What the stream is called; a random UUID. Whoever knows it can read and stop the stream. */
  readonly id?: string | undefined
}

/** The options with their defaults, in milliseconds. */
export interface ResolvedStreamOptions {
  readonly heartbeat: number
  readonly retry: number | undefined
  readonly clock: Clock
}

/** @throws TypeError that names the option which cannot be read. */
export function resolveStreamOptions({
  heartbeat = '3s',
  retry,
  clock = systemClock,
}: StreamOptions): ResolvedStreamOptions {
  const interval = heartbeat === null ? Infinity : parseDuration(heartbeat, 'heartbeat')
  if (interval === 0) throw new TypeError('heartbeat: expected more than 0 ms, or null for none')
  return {
    heartbeat: interval,
    retry: retry === undefined ? undefined : parseDuration(retry, 'retry'),
    clock,
  }
}

export function resolveResume(resume: ResumeStore | ResumeOptions): ResumeOptions {
  return 'store' in resume ? resume : { store: resume }
}
