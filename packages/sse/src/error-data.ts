import { findTimeBudgetError } from '@timebudget/core'
import { problemOf } from '@timebudget/core/server'

/** Data of an `error` event: why the stream has ended before its time. What came before it is `partial`. */
export interface ErrorData {
  readonly code: string
  readonly partial: true
  readonly [member: string]: unknown
}

/**
 * What a client may know of an error: one of ours as the problem it is answered with elsewhere, fields that were meant
 * to be sent (`{ code, ... }`) as they are, and of anything else nothing but that it happened.
 */
export function errorDataOf(error: unknown): ErrorData {
  const ours = findTimeBudgetError(error)
  if (ours !== undefined) return { ...problemOf(ours), code: ours.code, partial: true }
  const told = isTold(error) ? error : { code: 'INTERNAL', outcome: 'error' }
  return { ...told, partial: true }
}

function isTold(error: unknown): error is { readonly code: string } {
  if (typeof error !== 'object' || error === null || error instanceof Error) return false
  return 'code' in error && typeof error.code === 'string'
}
