import { Metadata, type StatusObject } from '@grpc/grpc-js'
import type { TimeBudgetError } from '@timebudget/core'
import { codeOf } from './rpc-status.ts'

/** A status; grpc-js gives all its members to the error that it makes of it. */
export type CausedStatus = StatusObject & { readonly cause?: TimeBudgetError }

/** The status of a call that ended with our error. */
export function statusOf(reason: TimeBudgetError): CausedStatus {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(reason.headers)) metadata.set(name, value)
  return { code: codeOf(reason), details: reason.message, metadata, cause: reason }
}
