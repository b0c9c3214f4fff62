import {
  findTimeBudgetError,
  type Outcome,
  type RunningOperation,
  UpstreamError,
  waitOutTheEdge,
} from '@timebudget/core'

/** What to throw for a call that failed with `error`; ends the operation. */
export async function failureOf(running: RunningOperation, error: unknown): Promise<unknown> {
  await waitOutTheEdge(running.deadline)
  return failureNow(running, error)
}

/**
 * For libraries whose errors are known by their names, codes and fields: as `failureOf`, but what failed by itself keeps
 * the library's error, with UpstreamError put among its causes.
 */
export async function blameUpstream(running: RunningOperation, error: Error): Promise<unknown> {
  await waitOutTheEdge(running.deadline)
  return blameUpstreamNow(running, error)
}

/** As `blameUpstream`, where the edge is known to be far or has been waited out. */
export function blameUpstreamNow(running: RunningOperation, error: Error): unknown {
  const origin = error.cause instanceof Error ? error.cause : new Error(error.message, { cause: error.cause })
  const failure = failureNow(running, origin)
  return failure instanceof UpstreamError ? withCause(error, failure) : failure
}

/** The error with this cause, unless it is frozen; some libraries make their own cause read-only. */
export function withCause<E extends Error>(error: E, cause: unknown): E {
  Reflect.defineProperty(error, 'cause', { value: cause, configurable: true, writable: true })
  return error
}

function failureNow(running: RunningOperation, error: unknown): unknown {
  const { reason } = running.deadline
  if (reason !== undefined) return running.fail(reason)
  // another client of ours, on top of which this one is, has said all there is to say
  if (findTimeBudgetError(error) !== undefined) return running.fail(error)
  const details = {
    operation: running.entry.name,
    budget: running.timeout,
    elapsed: running.deadline.elapsed(),
  }
  return running.fail(
    new UpstreamError(`${running.entry.name} failed: ${messageOf(error)}`, { ...details, cause: error }),
  )
}

/** Whether a peer's answer says that the time it had from us was up. */
export function isOutOfTime(outcome: Outcome): boolean {
  return outcome === 'deadline_exceeded' || outcome === 'operation_timeout'
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // undici says no more than 'fetch failed' itself
  return error.cause instanceof Error
    ? `${error.message}: ${error.cause.message || error.cause.name}`
    : error.message
}
