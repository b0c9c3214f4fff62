import {
  type BreakerMoved,
  breakerMoved,
  type FloorJudged,
  floorJudged,
  type FloorQuestionable,
  floorQuestionable,
  hedgeStarted,
  loopLagged,
  type QueueJudged,
  queueJudged,
  retryDecided,
  type RetryStop,
} from '@timebudget/core'
import { latenessBuckets, requestBuckets } from './bucket-metrics.ts'
import type { Recording } from './listening-metrics.ts'
import { metricLabels, metricNames } from './metric-names.ts'
import { NamedCounter } from './name-metrics.ts'

const { operation, decision } = metricLabels

/** Queues, breakers, retries, floors, and the event loop. */
export function recordResilience(recording: Recording): void {
  recordQueues(recording)
  recordBreakers(recording)
  recordRetries(recording)
  recordFloors(recording)
  recordLoop(recording)
}

const queueDecisions = wordsOf<QueueJudged['decision']>({ admitted: true, shed: true, left: true })

function recordQueues({ meter, names, listen }: Recording): void {
  const wait = meter.duration(metricNames.queueWait, {
    description: 'How long a caller stood in a queue, by what came of it.',
    buckets: requestBuckets,
  })
  const queues = names()
  const decisions = new NamedCounter({
    count: meter.counter(metricNames.queueDecisions, {
      description: 'Callers of a queue: admitted, shed by it, or left before their turn.',
      unit: '{caller}',
    }),
    names: queues,
    nameLabel: metricLabels.queue,
    wordLabel: decision,
    words: queueDecisions,
  })
  listen(queueJudged, ({ queue, decision: made, waited }) => {
    decisions.add(queue, made)
    wait(waited, { [metricLabels.queue]: queues.of(queue), [decision]: made })
  })
}

const breakerStates = wordsOf<BreakerMoved['to']>({ closed: true, open: true, half_open: true })

function recordBreakers({ meter, names, listen }: Recording): void {
  const state = meter.gauge(metricNames.breakerState, {
    description:
      '1 for the state that a circuit breaker is in, 0 for the others; absent before its first move.',
    unit: '1',
  })
  const breakers = names()
  const moves = new NamedCounter({
    count: meter.counter(metricNames.breakerMoves, {
      description: 'How often a circuit breaker came into a state.',
      unit: '{move}',
    }),
    names: breakers,
    nameLabel: metricLabels.breaker,
    wordLabel: metricLabels.breakerState,
    words: breakerStates,
  })
  listen(breakerMoved, ({ breaker, to }) => {
    moves.add(breaker, to)
    const name = breakers.of(breaker)
    for (const each of breakerStates)
      state(each === to ? 1 : 0, { [metricLabels.breaker]: name, [metricLabels.breakerState]: each })
  })
}

const retryStops = wordsOf<RetryStop>({
  no_time: true,
  no_attempts: true,
  no_budget: true,
  not_retryable: true,
  already_sent: true,
  already_a_retry: true,
  retry_after_too_long: true,
  cancelled: true,
})

function recordRetries({ meter, names, listen }: Recording): void {
  const operations = names()
  const decisions = new NamedCounter({
    count: meter.counter(metricNames.retryDecisions, {
      description: 'Failed attempts: tried again, or why not; no_budget is the retry budget.',
      unit: '{attempt}',
    }),
    names: operations,
    nameLabel: operation,
    wordLabel: decision,
    words: ['retry', ...retryStops],
  })
  const hedges = meter.counter(metricNames.hedges, {
    description: 'Second attempts that were begun while the first still ran.',
    unit: '{attempt}',
  })
  listen(retryDecided, ({ operation: name, stop = 'retry' }) => decisions.add(name, stop))
  listen(hedgeStarted, ({ operation: name }) => hedges(1, { [operation]: operations.of(name) }))
}

const floorDecisions = wordsOf<FloorJudged['decision']>({
  refused: true,
  observed: true,
  no_pressure: true,
  explored: true,
  capped: true,
})
const floorDoubts = wordsOf<FloorQuestionable['kind']>({ refuses_most: true, budget_too_short: true })

function recordFloors({ meter, names, listen }: Recording): void {
  const operations = names()
  const decisions = new NamedCounter({
    count: meter.counter(metricNames.floorDecisions, {
      description: 'Starts with less left than the learned floor: refused, or why they began all the same.',
      unit: '{start}',
    }),
    names: operations,
    nameLabel: operation,
    wordLabel: decision,
    words: floorDecisions,
  })
  const doubts = new NamedCounter({
    count: meter.counter(metricNames.floorDoubts, {
      description: 'Learned floors that their owner should look at.',
      unit: '{doubt}',
    }),
    names: operations,
    nameLabel: operation,
    wordLabel: metricLabels.doubt,
    words: floorDoubts,
  })
  listen(floorJudged, ({ operation: name, decision: made }) => decisions.add(name, made))
  listen(floorQuestionable, ({ operation: name, kind }) => doubts.add(name, kind))
}

function recordLoop({ meter, listen }: Recording): void {
  const lag = meter.duration(metricNames.loopLag, {
    description: 'How long the event loop was blocked, where that was worth telling.',
    buckets: latenessBuckets,
  })
  listen(loopLagged, ({ lag: milliseconds }) => lag(milliseconds))
}

/** A closed list in full: a word that core adds does not compile until it is here. */
function wordsOf<Word extends string>(words: Readonly<Record<Word, true>>): readonly string[] {
  return Object.keys(words)
}
