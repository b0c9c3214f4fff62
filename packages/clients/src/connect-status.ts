import { Code, ConnectError } from '@connectrpc/connect'
import type { TimeBudgetError } from '@timebudget/core'
import { codeOf } from './rpc-status.ts'

/** The error that a call which ended with ours fails with: ours is the cause, its headers are the metadata. */
export function connectErrorOf(reason: TimeBudgetError): ConnectError {
  return new ConnectError(reason.message, codeOf(reason), { ...reason.headers }, undefined, reason)
}

/**
 * Whether Connect's own timer has aborted a signal. Ours decides in its place: Connect's is set in 32 bits, so that one of
 * 25 days fires at once.
 */
export function isConnectTimeout(reason: unknown): reason is ConnectError {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded
}
