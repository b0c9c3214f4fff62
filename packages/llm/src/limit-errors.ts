import {
  ConnectTimeoutError,
  type ErrorDetails,
  FirstTokenTimeoutError,
  StreamStalledError,
  type TimeBudgetError,
  TotalTimeoutError,
  UpstreamError,
} from '@timebudget/core'
import type { Limits } from './profiles.ts'
import type { Limit } from './stream-governor.ts'

/** Where a stream stood when a limit passed. Milliseconds. */
export interface LimitPassed {
  readonly operation: string
  readonly limit: Limit
  readonly limits: Limits
  readonly elapsed: number
  /** What was left of the request; absent without a deadline. */
  readonly remaining: number | undefined
  /** Pieces of content that had come. */
  readonly contentChunks: number
}

/** The error that stands for a limit which has passed. */
export function limitError(passed: LimitPassed): TimeBudgetError {
  const { operation, limit, limits, elapsed, remaining, contentChunks } = passed
  const budget = limits[limit]
  // of a whole answer no pieces are counted
  const got = contentChunks === 0 ? 'the beginning of an answer' : `${contentChunks} pieces of content`
  const details: ErrorDetails = { operation, budget, elapsed, remaining }
  switch (limit) {
    case 'connect':
      return new ConnectTimeoutError(`${operation} got no connection within ${budget} ms`, details)
    case 'firstToken':
      return new FirstTokenTimeoutError(`${operation} got no first token within ${budget} ms`, details)
    case 'idleContent':
      return new StreamStalledError(`${operation} got ${got}, and then no more for ${budget} ms`, details)
    case 'idleTransport':
      return new StreamStalledError(
        `${operation} got ${got}, and then nothing at all for ${budget} ms`,
        details,
      )
    case 'total':
      return new TotalTimeoutError(`${operation} took longer than its ${budget} ms in all`, details)
  }
}

/** What a library said of its connection. Not its own error: some SDKs retry by themselves whatever has a code of those. */
class ConnectionFailure extends Error {
  override readonly name = 'ConnectionFailure'
  /** `ECONNREFUSED`, `UND_ERR_SOCKET`, ... */
  readonly transportCode: string | undefined

  constructor(message: string, transportCode: string | undefined) {
    super(message)
    this.transportCode = transportCode
  }
}

/** The error that stands for a connection which failed, or an answer which broke off. */
export function connectionError(operation: string, error: unknown, elapsed: number): UpstreamError {
  const failure = innermost(error)
  const code = failure instanceof Error && 'code' in failure ? String(failure.code) : undefined
  const message = failure instanceof Error ? failure.message || code || failure.name : String(failure)
  return new UpstreamError(`${operation} failed: ${message}`, {
    operation,
    elapsed,
    cause: new ConnectionFailure(message, code),
  })
}

/** undici says no more than 'fetch failed' or 'terminated' itself. */
function innermost(error: unknown): unknown {
  let inner = error
  for (let depth = 0; depth < 10 && inner instanceof Error && inner.cause instanceof Error; depth += 1)
    inner = inner.cause
  return inner
}
