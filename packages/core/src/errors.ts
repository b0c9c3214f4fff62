import type { Outcome } from './outcome.ts'

/** The stable `code` of each error. */
export type TimeBudgetErrorCode =
  | 'DEADLINE_EXCEEDED'
  | 'BUDGET_TOO_SMALL'
  | 'OPERATION_TIMEOUT'
  | 'CLIENT_CLOSED'
  | 'CANCELLED'
  | 'OVERLOADED'
  | 'CIRCUIT_OPEN'
  | 'SHUTTING_DOWN'
  | 'CONNECT_TIMEOUT'
  | 'FIRST_TOKEN_TIMEOUT'
  | 'STREAM_STALLED'
  | 'TOTAL_TIMEOUT'
  | 'UPSTREAM_ERROR'

/** What an error knows of the moment it arose; milliseconds. */
export interface ErrorDetails {
  readonly operation?: string | undefined
  readonly budget?: number | undefined
  readonly elapsed?: number | undefined
  readonly remaining?: number | undefined
  readonly cause?: unknown
  /** Milliseconds after which a retry may succeed; becomes `Retry-After`. */
  readonly retryAfter?: number | undefined
}

// A brand that copies of this package share, since instanceof fails between two of them.
const brand = Symbol.for('timebudget.error.v1')

/** The base of every error that timebudget makes: tell them apart by `code`, not by class or message. */
export abstract class TimeBudgetError extends Error {
  abstract readonly code: TimeBudgetErrorCode
  abstract readonly outcome: Outcome
  /** The HTTP status this error is answered with. */
  abstract readonly status: number
  readonly operation: string | undefined
  /** Milliseconds that were granted. */
  readonly budget: number | undefined
  /** Milliseconds that had passed of them. */
  readonly elapsed: number | undefined
  /** Milliseconds that were left. */
  readonly remaining: number | undefined
  readonly retryAfter: number | undefined

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.operation = details.operation
    this.budget = details.budget
    this.elapsed = details.elapsed
    this.remaining = details.remaining
    this.retryAfter = details.retryAfter
  }

  /** The same for frameworks that read this name, such as NestJS. */
  get statusCode(): number {
    return this.status
  }

  /** Headers an answer made of this error carries; Express, Koa and Fastify send `error.headers` by themselves. */
  get headers(): Readonly<Record<string, string>> {
    const headers: Record<string, string> = { 'x-deadline-outcome': this.outcome }
    const seconds = Math.ceil((this.retryAfter ?? Number.NaN) / 1000)
    if (Number.isFinite(seconds)) headers['retry-after'] = String(Math.max(1, seconds))
    return headers
  }
}

Object.defineProperty(TimeBudgetError.prototype, brand, { value: true })

/** The deadline passed. */
export class DeadlineExceededError extends TimeBudgetError {
  override readonly name = 'DeadlineExceededError'
  readonly code = 'DEADLINE_EXCEEDED'
  readonly outcome = 'deadline_exceeded'
  readonly status = 504
}

/** Less time was left than the operation needs, so it was not started. */
export class BudgetTooSmallError extends TimeBudgetError {
  override readonly name = 'BudgetTooSmallError'
  readonly code = 'BUDGET_TOO_SMALL'
  readonly outcome = 'short_circuited'
  readonly status = 504
}

/** The operation's own timeout passed while the request still had time. */
export class OperationTimeoutError extends TimeBudgetError {
  override readonly name = 'OperationTimeoutError'
  readonly code = 'OPERATION_TIMEOUT'
  readonly outcome = 'operation_timeout'
  readonly status = 504
}

/** The client went away; never sent to anybody. */
export class ClientClosedError extends TimeBudgetError {
  override readonly name = 'ClientClosedError'
  readonly code = 'CLIENT_CLOSED'
  readonly outcome = 'client_closed'
  readonly status = 499
}

/** The work was cancelled by its own program. */
export class CancelledError extends TimeBudgetError {
  override readonly name = 'CancelledError'
  readonly code = 'CANCELLED'
  readonly outcome = 'cancelled'
  readonly status = 499
}

/** Refused on arrival: the work could not have finished in time. */
export class OverloadedError extends TimeBudgetError {
  override readonly name = 'OverloadedError'
  readonly code = 'OVERLOADED'
  readonly outcome = 'shed'
  readonly status = 503
}

/** Refused because what is called keeps failing. */
export class CircuitOpenError extends TimeBudgetError {
  override readonly name = 'CircuitOpenError'
  readonly code = 'CIRCUIT_OPEN'
  readonly outcome = 'circuit_open'
  readonly status = 503
}

/** The process is going down. */
export class ShutdownError extends TimeBudgetError {
  override readonly name = 'ShutdownError'
  readonly code = 'SHUTTING_DOWN'
  readonly outcome = 'shutdown'
  readonly status = 503
}

/** No connection within its limit. */
export class ConnectTimeoutError extends TimeBudgetError {
  override readonly name = 'ConnectTimeoutError'
  readonly code = 'CONNECT_TIMEOUT'
  readonly outcome = 'connect_timeout'
  readonly status = 504
}

/** No first token within its limit. */
export class FirstTokenTimeoutError extends TimeBudgetError {
  override readonly name = 'FirstTokenTimeoutError'
  readonly code = 'FIRST_TOKEN_TIMEOUT'
  readonly outcome = 'first_token_timeout'
  readonly status = 504
}

/** A stream that had begun went silent for longer than its limit. */
export class StreamStalledError extends TimeBudgetError {
  override readonly name = 'StreamStalledError'
  readonly code = 'STREAM_STALLED'
  readonly outcome = 'stream_stalled'
  readonly status = 504
}

/** A call took longer in all than its limit. */
export class TotalTimeoutError extends TimeBudgetError {
  override readonly name = 'TotalTimeoutError'
  readonly code = 'TOTAL_TIMEOUT'
  readonly outcome = 'total_timeout'
  readonly status = 504
}

/** What was called failed; the library's error is the `cause`. */
export class UpstreamError extends TimeBudgetError {
  override readonly name = 'UpstreamError'
  readonly code = 'UPSTREAM_ERROR'
  readonly outcome = 'upstream_error'
  readonly status = 502
}

/** Whether a value is one of our errors, made by this copy of the package or by another; never throws. */
export function isTimeBudgetError(value: unknown): value is TimeBudgetError {
  try {
    return typeof value === 'object' && value !== null && brand in value
  } catch {
    return false // a proxy of somebody's
  }
}

// Deep enough for every client's wrapping, and an end for chains that bite their tail.
const longestCauseChain = 10

/**
 * Our error within a value's chain of causes, since http, timers and streams wrap an abort's reason in their own. Never
 * throws, whatever was thrown.
 */
export function findTimeBudgetError(value: unknown): TimeBudgetError | undefined {
  let link: unknown = value
  for (let depth = 0; depth < longestCauseChain; depth += 1) {
    if (isTimeBudgetError(link)) return link
    link = causeOf(link)
  }
  return undefined
}

function causeOf(link: unknown): unknown {
  // no instanceof: an error of Node's own is none of a test runner's that has globals of its own
  if (typeof link !== 'object' || link === null) return undefined
  try {
    return 'cause' in link ? link.cause : undefined
  } catch {
    return undefined // who looks at an error in order to end its operation must not fail itself
  }
}

/** The outcome a failure stands for: our own word for it, else `error`. */
export function outcomeOf(error: unknown): Outcome {
  return findTimeBudgetError(error)?.outcome ?? 'error'
}
