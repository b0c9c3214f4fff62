import { context, type Span } from '@opentelemetry/api'
import { type RequestFinished, requestFinished, type RequestStarted, requestStarted } from '@timebudget/core'
import { describe, spanAttributes, wholeMs } from './attributes.ts'
import { guarded } from './guarded.ts'
import { beforeEnd } from './span-ends.ts'
import { entrySpan } from './span-places.ts'
import { type EndedWork, stampOutcome } from './span-status.ts'

/** A caller that keeps the same deadline may hang up so long before it; the deadline then decides, after the span's end. */
const edge = 50

interface OpenEntry {
  readonly span: Span
  readonly started: RequestStarted
  finished: RequestFinished | undefined
}

/** Writes on the span of each request, which an instrumentation has made, what became of its deadline; until stopped. */
export function stampRequests(isUnset: (ended: EndedWork) => boolean): () => void {
  const open = new WeakMap<object, OpenEntry>()
  const unsubscribe = [
    requestStarted.subscribe((started) => guarded('the span of a request', () => begin(started), undefined)),
    requestFinished.subscribe((finished) =>
      guarded('the span of a request', () => finish(finished), undefined),
    ),
  ]
  return function stopStamping(): void {
    for (const stop of unsubscribe) stop()
  }

  function begin(started: RequestStarted): void {
    const span = entrySpan(context.active())
    if (span === undefined || !span.isRecording()) return
    const entry: OpenEntry = { span, started, finished: undefined }
    open.set(started.request, entry)
    const { deadline, source, clamped } = started
    describe(span, {
      [spanAttributes.limit]: wholeMs(deadline.budget),
      [spanAttributes.remaining]: wholeMs(deadline.budget),
      [spanAttributes.source]: source,
      [spanAttributes.clamped]: clamped,
      [spanAttributes.attempt]: deadline.attempt > 1 ? deadline.attempt : undefined,
    })
    // at the end, since instrumentations give it a status then; not all of its facts may be known so late
    beforeEnd(span, () => writeEnd(entry, isUnset), { patch: true })
  }

  function finish(finished: RequestFinished): void {
    const entry = open.get(finished.request)
    if (entry === undefined) return
    open.delete(finished.request)
    entry.finished = finished
  }
}

function writeEnd({ span, started, finished }: OpenEntry, isUnset: (ended: EndedWork) => boolean): void {
  const { deadline, source } = finished ?? started
  const elapsed = finished?.elapsed ?? deadline.elapsed()
  const budget = finished?.budget ?? deadline.budget
  const outcome = finished?.outcome ?? endToCome(started)
  describe(span, {
    [spanAttributes.limit]: wholeMs(budget),
    [spanAttributes.source]: source,
    [spanAttributes.consumed]: wholeMs(elapsed),
    [spanAttributes.overrun]: wholeMs(finished?.overrun ?? elapsed - budget),
    [spanAttributes.goneBy]: finished?.goneBy,
  })
  if (outcome === undefined) return
  const begun = finished?.status !== undefined && finished.status < 500
  const ended: EndedWork = { kind: 'request', operation: undefined, outcome, begun }
  stampOutcome(span, ended, { error: deadline.reason, isUnset })
}

/** How a request ends whose span did first: its client has hung up right before the deadline, which is waited for. */
function endToCome({ deadline }: RequestStarted): RequestFinished['outcome'] | undefined {
  if (deadline.reason !== undefined) return deadline.reason.outcome
  return deadline.remaining() <= edge ? 'deadline_exceeded' : undefined
}
