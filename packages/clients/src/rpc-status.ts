import type { Outcome, RunningOperation, TimeBudgetError } from '@timebudget/core'
import { outcomeOfAnswer, type PeerAnswer, type ResolvedClientOptions } from './outgoing.ts'

// gRPC's status codes, which Connect shares.
const cancelled = 1
const deadlineExceeded = 4
const unavailable = 14

/** The code of each status, as HTTP would have it: a failure of the peer's, or of what was asked of it. */
const httpStatusOf: readonly number[] = [
  200, // OK
  499, // CANCELLED
  500, // UNKNOWN
  400, // INVALID_ARGUMENT
  504, // DEADLINE_EXCEEDED
  404, // NOT_FOUND
  409, // ALREADY_EXISTS
  403, // PERMISSION_DENIED
  429, // RESOURCE_EXHAUSTED
  400, // FAILED_PRECONDITION
  409, // ABORTED
  400, // OUT_OF_RANGE
  501, // UNIMPLEMENTED
  500, // INTERNAL
  503, // UNAVAILABLE
  500, // DATA_LOSS
  401, // UNAUTHENTICATED
]

/** The status code that a call which ended with our error ends with. */
export function codeOf({ status }: TimeBudgetError): number {
  if (status === 504) return deadlineExceeded
  return status === 499 ? cancelled : unavailable
}

/** How a handler's answer with this status ends its call. */
export function outcomeOfStatus(code: number): Outcome {
  return (httpStatusOf[code] ?? 500) >= 500 ? 'error' : 'ok'
}

/** What a peer says, in headers and trailers, with the status of its answer. */
export interface PeerStatus extends Omit<PeerAnswer, 'status'> {
  readonly code: number
}

/** Takes the peer's report into the ledger, if the peer is to be believed, and says how the call ended for us. */
export function outcomeOfPeer(
  { code, deadlineOutcome, ...answer }: PeerStatus,
  running: RunningOperation,
  options: Pick<ResolvedClientOptions<never>, 'trusts'>,
): Outcome {
  // a call that ended as cancelled without our doing is the peer's failure; a deadline that passed there was ours
  const status = code === cancelled ? 502 : (httpStatusOf[code] ?? 500)
  const outcome = deadlineOutcome ?? (code === deadlineExceeded ? 'deadline_exceeded' : undefined)
  return outcomeOfAnswer({ ...answer, status, deadlineOutcome: outcome }, running, options)
}

/** Servers of grpc-js and connect-es take what is longer, rounded to seconds, for a time that has passed. */
export const longestTimeout = 2_147_483_000
