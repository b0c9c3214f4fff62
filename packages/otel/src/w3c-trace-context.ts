import {
  type Context,
  createTraceState,
  isSpanContextValid,
  type SpanContext,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
  trace,
} from '@opentelemetry/api'
import { isTracingSuppressed } from './suppressed.ts'

// version, trace, span, flags; later versions may have more behind
const traceparentForm =
  /^ ?(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)? ?$/

/** `traceparent` and `tracestate`, as W3C Trace Context has them. */
export const traceContext: TextMapPropagator = {
  inject(context: Context, carrier: unknown, setter: TextMapSetter): void {
    const span = trace.getSpanContext(context)
    if (span === undefined || !isSpanContextValid(span) || isTracingSuppressed(context)) return
    const flags = span.traceFlags.toString(16).padStart(2, '0')
    setter.set(carrier, 'traceparent', `00-${span.traceId}-${span.spanId}-${flags}`)
    if (span.traceState !== undefined) setter.set(carrier, 'tracestate', span.traceState.serialize())
  },

  extract(context: Context, carrier: unknown, getter: TextMapGetter): Context {
    const span = readTraceparent([getter.get(carrier, 'traceparent')].flat()[0])
    if (span === undefined) return context
    const state = [getter.get(carrier, 'tracestate') ?? []].flat().join(',')
    return trace.setSpanContext(context, {
      ...span,
      ...(state === '' ? {} : { traceState: createTraceState(state) }),
    })
  },

  fields: () => ['traceparent', 'tracestate'],
}

function readTraceparent(header: unknown): SpanContext | undefined {
  const match = typeof header === 'string' ? traceparentForm.exec(header) : null
  if (match === null) return undefined
  const [, version, traceId = '', spanId = '', flags = '', rest] = match
  if (version === '00' && rest !== undefined) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}
