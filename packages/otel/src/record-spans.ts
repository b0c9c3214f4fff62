import { trace, type Tracer, type TracerProvider } from '@opentelemetry/api'
import { refuseUnknownOptions } from '@timebudget/core'
import { describeAnswers } from './answer-spans.ts'
import { traceLlmCalls } from './llm-spans.ts'
import { traceOperations } from './operation-spans.ts'
import { stampRequests } from './request-spans.ts'
import { resolveUnset, type UnsetRule } from './span-status.ts'

/** What may be said about spans; every option may be left out. */
export interface SpanOptions {
  /**
   * Which ends leave a span's status unset although nothing was achieved: outcomes, or a function of the end, as in
   * `({ begun }) => begun` for streams that were cut off. Users who left never count as errors.
   */
  readonly unset?: UnsetRule | undefined
  /** Whether operations, and calls to models, become spans of their own; `true`. */
  readonly operations?: boolean | undefined
  /** Who makes them; the global one. */
  readonly tracerProvider?: TracerProvider | undefined
}

/**
 * Writes what became of each request's deadline on its span, which an instrumentation has made, and makes spans of
 * operations and of calls to models, until the returned function is called. Needs no span processor; spans that others
 * make inside a request are left as they are. `DeadlineSpanProcessor` includes it.
 *
 *     const stop = recordSpans({ unset: ['shed'] })
 *
 * @throws TypeError that names the option which does not exist or cannot be read.
 */
export function recordSpans(options: SpanOptions = {}): () => void {
  refuseUnknownOptions(options, ['unset', 'operations', 'tracerProvider'])
  const isUnset = resolveUnset(options.unset)
  const stops = [stampRequests(isUnset)]
  if (options.operations !== false) {
    // asked for at each span: another copy of the API may register an SDK later
    const tracer = (): Tracer => (options.tracerProvider ?? trace).getTracer('@timebudget/otel')
    stops.push(traceOperations(tracer, isUnset), traceLlmCalls(tracer, isUnset), describeAnswers())
  }
  return function stopRecording(): void {
    for (const stop of stops.splice(0)) stop()
  }
}
