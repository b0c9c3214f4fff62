import { type Context, context, type Span, SpanKind, type Tracer, trace } from '@opentelemetry/api'
import {
  type Deadline,
  deadlineSent,
  type Ledger,
  type LedgerEntry,
  type OperationFinished,
  operationFinished,
  type OperationStarted,
  operationStarted,
} from '@timebudget/core'
import { describe, spanAttributes, wholeMs } from './attributes.ts'
import { isModelCall } from './gen-ai-attributes.ts'
import { guarded } from './guarded.ts'
import { shortened } from './span-names.ts'
import { withOwnMark } from './span-places.ts'
import { type EndedWork, stampOutcome } from './span-status.ts'

/** An operation that has become a span. */
export interface OperationSpan {
  readonly span: Span
  readonly entry: LedgerEntry
  readonly ledger: Ledger
  /** What was active when it began. */
  readonly base: Span | undefined
  /** The span that an SDK has made of the call to a model which this operation is part of. */
  readonly sdkSpan: Span | undefined
  isOver: boolean
}

const spanOf = new WeakMap<LedgerEntry, OperationSpan>()
const spanUnder = new WeakMap<Deadline, OperationSpan>()
const operationOf = new WeakMap<Span, OperationSpan>()

/** The operation's span that works under exactly this deadline. */
export function operationSpanUnder(deadline: Deadline | undefined): OperationSpan | undefined {
  return deadline === undefined ? undefined : spanUnder.get(deadline)
}

/** Makes a span of each operation, around all that is done for it; until stopped. */
export function traceOperations(tracer: () => Tracer, isUnset: (ended: EndedWork) => boolean): () => void {
  const safely = <Event>(hook: (event: Event) => void) => {
    return (event: Event): void => guarded('the span of an operation', () => hook(event), undefined)
  }
  const unsubscribe = [
    operationStarted.subscribe(safely((started) => begin(started, tracer))),
    operationFinished.subscribe(safely((finished) => end(finished, { tracer, isUnset }))),
    deadlineSent.subscribe(
      safely(({ deadline, sent }) =>
        spanUnder.get(deadline)?.span.setAttribute(spanAttributes.propagated, sent),
      ),
    ),
  ]
  return function stopTracing(): void {
    for (const stop of unsubscribe) stop()
  }
}

function begin({ deadline, entry, around }: OperationStarted, tracer: () => Tracer): void {
  // somebody else listens as well
  if (spanOf.has(entry)) return
  const { span } = startSpan({ deadline, entry }, tracer)
  // what is not recorded is nobody's parent
  if (span.isRecording()) around((work) => context.with(trace.setSpan(context.active(), span), work))
}

function end(
  { deadline, entry, error }: OperationFinished,
  { tracer, isUnset }: { readonly tracer: () => Tracer; readonly isUnset: (ended: EndedWork) => boolean },
): void {
  // what was refused had no beginning
  const made = spanOf.get(entry) ?? startSpan({ deadline, entry }, tracer)
  if (made.isOver) return
  made.isOver = true
  const { span } = made
  const ended = {
    kind: 'operation',
    operation: entry.name,
    outcome: entry.outcome ?? 'ok',
    begun: false,
  } as const
  try {
    span.setAttribute(spanAttributes.consumed, wholeMs(entry.spent) ?? 0)
    stampOutcome(span, ended, { error, isUnset })
  } finally {
    span.end()
  }
}

function startSpan(
  { deadline, entry }: { readonly deadline: Deadline; readonly entry: LedgerEntry },
  tracer: () => Tracer,
): OperationSpan {
  const running = context.active()
  const outer = operationAround(deadline, entry, trace.getSpan(running))
  const parent = parentOf(running, outer)
  const span = tracer().startSpan(shortened(entry.name), { kind: SpanKind.INTERNAL }, withOwnMark(parent))
  const above = trace.getSpan(parent)
  const sdkSpan = above !== undefined && isModelCall(above) ? above : outer?.sdkSpan
  const made: OperationSpan = {
    span,
    entry,
    ledger: deadline.ledger,
    base: trace.getSpan(running),
    sdkSpan,
    isOver: false,
  }
  spanOf.set(entry, made)
  spanUnder.set(deadline, made)
  operationOf.set(span, made)
  if (!span.isRecording()) return made
  describe(span, {
    [spanAttributes.operation]: shortened(entry.path),
    [spanAttributes.remaining]: wholeMs(entry.remaining),
    [spanAttributes.granted]: wholeMs(entry.granted),
    [spanAttributes.floor]: wholeMs(entry.floor),
    [spanAttributes.reserve]: wholeMs(entry.reserve),
    [spanAttributes.attempt]: deadline.attempt > 1 ? deadline.attempt : undefined,
  })
  return made
}

/** The innermost span: what is active, unless it was already so when the operation around this one began. */
function parentOf(running: Context, outer: OperationSpan | undefined): Context {
  if (outer === undefined || !outer.span.isRecording()) return running
  const active = trace.getSpan(running)
  const isWithin = active !== undefined && active !== outer.base && isSameTrace(active, outer.span)
  return isWithin ? running : trace.setSpan(running, outer.span)
}

function isSameTrace(one: Span, other: Span): boolean {
  return one.spanContext().traceId === other.spanContext().traceId
}

/** The operation that this one is part of, by the ledger, whose names go from the outermost to the innermost. */
function operationAround(
  { ledger }: Deadline,
  { name, path }: LedgerEntry,
  active: Span | undefined,
): OperationSpan | undefined {
  if (path === name) return undefined
  const outerPath = path.slice(0, -name.length - 1)
  // mostly it is the one whose work is running: of several with one name it alone is right, and a ledger may be long
  const running = active === undefined ? undefined : operationOf.get(active)
  if (running?.ledger === ledger && running.entry.path === outerPath && !running.isOver) return running
  const outer = ledger.entries.findLast(
    (entry) => entry.path === outerPath && entry.source === 'local' && entry.outcome === undefined,
  )
  return outer === undefined ? undefined : spanOf.get(outer)
}
