import {
  type LedgerEntry,
  operationFinished,
  type TimeBudgetError,
  findTimeBudgetError,
  workLate,
} from '@timebudget/core'
import { latenessBuckets, requestBuckets } from './bucket-metrics.ts'
import type { Recording } from './listening-metrics.ts'
import { metricLabels, metricNames } from './metric-names.ts'
import { lastName } from './work-metrics.ts'

/** Operations: how long they took, how they ended, what was left when they began, and how soon they end once nobody waits. */
export function recordOperations({ meter, names, listen }: Recording): void {
  const duration = meter.duration(metricNames.operationDuration, {
    description: 'How long an operation took, by how it ended.',
    buckets: requestBuckets,
  })
  const remaining = meter.duration(metricNames.budgetRemaining, {
    description: 'What was left of the request when an operation began, or was refused.',
    buckets: requestBuckets,
  })
  const cancellation = meter.duration(metricNames.cancellation, {
    description:
      "From the client's leaving to the end of an operation, and of the work that went on all the same.",
    buckets: latenessBuckets,
  })
  const operations = names()

  listen(operationFinished, ({ entry, error }) => {
    const { outcome = 'error', spent = 0 } = entry
    const operation = operations.of(entry.name)
    duration(spent, { [metricLabels.operation]: operation, [metricLabels.outcome]: outcome })
    remaining(entry.remaining, { [metricLabels.operation]: operation })
    if (outcome !== 'client_closed') return
    const latency = sinceClientLeft(entry, findTimeBudgetError(error))
    if (latency === undefined) return
    cancellation(latency, { [metricLabels.operation]: operation, [metricLabels.ended]: 'operation' })
  })
  listen(workLate, ({ kind, operation = '', deadline, lateBy }) => {
    if (kind !== 'operation' || deadline.reason?.outcome !== 'client_closed') return
    const name = operations.of(lastName(operation))
    cancellation(lateBy, { [metricLabels.operation]: name, [metricLabels.ended]: 'work' })
  })
}

/**
 * Milliseconds from the client's leaving to the operation's end; unknown for operations within others, and for those
 * under a deadline that is shorter than the one which was cancelled.
 */
function sinceClientLeft(entry: LedgerEntry, cause: TimeBudgetError | undefined): number | undefined {
  const { name, path, start, remaining, spent } = entry
  if (name !== path || spent === undefined) return undefined
  if (cause?.elapsed === undefined || cause.budget === undefined) return undefined
  // a route's own deadline began after the ledger, which counts from the request's arrival
  const began = start + remaining - cause.budget
  if (began < -1 || began > start + 1) return undefined
  return Math.max(0, start + spent - (began + cause.elapsed))
}
