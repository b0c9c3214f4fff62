import { type Outcome, outcomes, requestFinished, requestStarted } from '@timebudget/core'
import { latenessBuckets, requestBuckets, shareBuckets } from './bucket-metrics.ts'
import type { Recording } from './listening-metrics.ts'
import { metricLabels, metricNames } from './metric-names.ts'

/** Requests: how many, how they ended, what they were granted, and how much of it they took. */
export function recordRequests({ meter, names, listen, onStop }: Recording): void {
  const requests = meter.counter(metricNames.requests, {
    description: 'Requests that have ended, by how they ended; a client that left is no failure.',
    unit: '{request}',
    zeros: outcomes.map((outcome) => ({ [metricLabels.outcome]: outcome })),
  })
  const clientsClosed = meter.counter(metricNames.clientsClosed, {
    description: 'Requests whose client left, by how it left.',
    unit: '{request}',
    zeros: ['client_fin', 'client_reset'].map((goneBy) => ({ [metricLabels.goneBy]: goneBy })),
  })
  const active = meter.level(metricNames.activeRequests, {
    description: 'Requests under way.',
    unit: '{request}',
  })
  const limit = meter.duration(metricNames.budgetLimit, {
    description: 'What a request may take here; from the header, it is what its caller had left.',
    buckets: requestBuckets,
  })
  const utilization = meter.histogram(metricNames.budgetUtilization, {
    description: 'The share of its budget that a request has taken; more than 1 if it ended late.',
    unit: '1',
    buckets: shareBuckets,
  })
  const overrun = meter.duration(metricNames.overrun, {
    description: 'How long after its deadline a request ended; only of those that did.',
    buckets: latenessBuckets,
  })

  // whoever was under way before the recording began is not counted out of it
  const underWay = new WeakSet<object>()
  // an HTTP/2 client chooses the number in it
  const waysToLeave = names()

  listen(requestStarted, ({ deadline, source, clamped, request }) => {
    underWay.add(request)
    active.up()
    limit(deadline.budget, { [metricLabels.source]: source, [metricLabels.clamped]: clamped })
  })
  listen(requestFinished, ({ budget, outcome, elapsed, overrun: late, goneBy, request }) => {
    const attributes = { [metricLabels.outcome]: outcome }
    requests(1, attributes)
    if (underWay.delete(request)) active.down()
    if (isLeft(outcome)) clientsClosed(1, { [metricLabels.goneBy]: waysToLeave.of(goneBy ?? 'unknown') })
    // of no limit there is no share
    if (budget < Infinity) utilization(elapsed / budget, attributes)
    if (late > 0) overrun(late, attributes)
  })
  onStop(() => active.clear())
}

function isLeft(outcome: Outcome): boolean {
  return outcome === 'client_closed'
}
