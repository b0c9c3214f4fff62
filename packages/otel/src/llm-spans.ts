import { type Attributes, context, type Span, SpanKind, type Tracer, trace } from '@opentelemetry/api'
import { currentDeadline } from '@timebudget/core'
import { describe, spanAttributes, wholeMs } from './attributes.ts'
import { genAiAttributes as genAi } from './gen-ai-attributes.ts'
import { conventional, operationAt } from './gen-ai-words.ts'
import { guarded } from './guarded.ts'
import { type FinishedCall, llmCallFinished } from './llm-events.ts'
import { operationSpanUnder } from './operation-spans.ts'
import { shortened } from './span-names.ts'
import { withOwnMark } from './span-places.ts'
import { type EndedWork, stampOutcome } from './span-status.ts'

/** Calls that have a span: two recordings would double what was used in every sum. */
const traced = new WeakSet<FinishedCall>()

/** Makes a span of each call to a model, beneath its operation's; until stopped. */
export function traceLlmCalls(tracer: () => Tracer, isUnset: (ended: EndedWork) => boolean): () => void {
  return llmCallFinished.subscribe((call) =>
    guarded('the span of a call to a model', () => traceCall(call, tracer, isUnset), undefined),
  )
}

function traceCall(call: FinishedCall, tracer: () => Tracer, isUnset: (ended: EndedWork) => boolean): void {
  // neither was ever made
  if (call.sdkRetry || call.outcome === 'short_circuited' || traced.has(call)) return
  traced.add(call)
  const operation = operationSpanUnder(currentDeadline())
  // it has the usage, and what we know beyond
  if (operation?.sdkSpan !== undefined) return describeSdkSpan(operation.sdkSpan, call)
  const running = context.active()
  const parent = operation === undefined ? running : trace.setSpan(running, operation.span)
  const { url, model, timings } = call
  const kindOfCall = operationAt(url)
  const endTime = performance.timeOrigin + performance.now()
  const span = tracer().startSpan(
    model === undefined ? kindOfCall : shortened(`${kindOfCall} ${model}`),
    { kind: SpanKind.CLIENT, startTime: endTime - timings.total, attributes: attributesOf(call) },
    withOwnMark(parent),
  )
  const begun = timings.firstChunk !== undefined
  const ended = { kind: 'llm_call', operation: call.operation, outcome: call.outcome, begun } as const
  try {
    describe(span, { [spanAttributes.consumed]: wholeMs(timings.total) })
    stampOutcome(span, ended, { error: call.error, isUnset })
  } finally {
    span.end(endTime)
  }
}

/** Of several attempts behind one span the last one stands. */
function describeSdkSpan(span: Span, { timings, complete, outcome }: FinishedCall): void {
  if (!span.isRecording()) return
  const firstToken = wholeMs(timings.firstToken)
  describe(span, {
    ...(firstToken === undefined ? {} : { [spanAttributes.firstToken]: firstToken }),
    [spanAttributes.complete]: complete,
    [spanAttributes.outcome]: outcome,
  })
}

function attributesOf(call: FinishedCall): Attributes {
  const { url, provider, model, usage, timings, status, attempt, complete } = call
  const { hostname, port } = new URL(url)
  const known: Record<string, Attributes[string] | undefined> = {
    [genAi.operation]: operationAt(url),
    [genAi.provider]: conventional(provider),
    [genAi.model]: model === undefined ? undefined : shortened(model),
    [genAi.stream]: timings.firstChunk === undefined ? undefined : true,
    [genAi.inputTokens]: usage.inputTokens,
    [genAi.outputTokens]: usage.outputTokens,
    [genAi.firstChunk]: timings.firstChunk === undefined ? undefined : timings.firstChunk / 1000,
    'server.address': hostname,
    'server.port': port === '' ? undefined : Number(port),
    'http.response.status_code': status,
    [spanAttributes.firstToken]: wholeMs(timings.firstToken),
    [spanAttributes.complete]: complete,
    [spanAttributes.estimated]: usage.estimated ? true : undefined,
    [spanAttributes.attempt]: attempt > 1 ? attempt : undefined,
  }
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined))
}
