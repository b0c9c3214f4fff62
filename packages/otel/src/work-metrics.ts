import { type Outcome, requestFinished, workLate } from '@timebudget/core'
import { requestBuckets } from './bucket-metrics.ts'
import type { Recording } from './listening-metrics.ts'
import { metricLabels, metricNames } from './metric-names.ts'

const kinds = ['request', 'operation', 'answer'] as const

/** Work: how much there was, how much of it was for nobody, and how long it goes on when it should have ended. */
export function recordWork({ meter, names, listen }: Recording): void {
  const late = meter.duration(metricNames.lateWork, {
    description: 'How long after its end work came to a result that nobody gets.',
    buckets: requestBuckets,
  })
  const zeros = kinds.map((kind) => ({ [metricLabels.workKind]: kind }))
  const work = meter.counter(metricNames.work, {
    description: 'Seconds worked: by requests until their end, and by what went on after it.',
    unit: 's',
    zeros,
  })
  const wasted = meter.counter(metricNames.wastedWork, {
    description:
      'Seconds worked for nobody: by requests that nobody got an answer to, and by what went on after the end.',
    unit: 's',
    zeros,
  })

  listen(requestFinished, ({ outcome, elapsed }) => {
    const attributes = { [metricLabels.workKind]: 'request' }
    work(elapsed / 1000, attributes)
    if (isForNobody(outcome)) wasted(elapsed / 1000, attributes)
  })
  const operations = names()
  listen(workLate, ({ kind, operation, lateBy }) => {
    const attributes = { [metricLabels.workKind]: kind }
    const name =
      operation === undefined ? {} : { [metricLabels.operation]: operations.of(lastName(operation)) }
    late(lateBy, { ...attributes, ...name })
    work(lateBy / 1000, attributes)
    wasted(lateBy / 1000, attributes)
  })
}

/** The operation's own name, of those from the outermost one to it. */
export function lastName(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1)
}

/** Whether the client had gone or given up by then. */
function isForNobody(outcome: Outcome): boolean {
  return (
    outcome === 'client_closed' ||
    outcome === 'cancelled' ||
    outcome === 'deadline_exceeded' ||
    outcome === 'shutdown'
  )
}
