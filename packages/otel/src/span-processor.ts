import type { Context, Span } from '@opentelemetry/api'
import { currentDeadline } from '@timebudget/core'
import { attributeOf, spanAttributes, wholeMs } from './attributes.ts'
import { guarded } from './guarded.ts'
import { recordSpans, type SpanOptions } from './record-spans.ts'
import { beforeEnd, writeBeforeEnd } from './span-ends.ts'
import { isOwn, notePlace } from './span-places.ts'
import { clearStatus, isAbandoned } from './span-status.ts'

/**
 * A span processor for the OpenTelemetry SDK: every span of a request, whoever makes it, has what was left of the budget
 * when it began and what it consumed of it; what `recordSpans` does is included. Exports nothing itself.
 *
 *     new NodeSDK({ spanProcessors: [new DeadlineSpanProcessor(), new BatchSpanProcessor(exporter)] })
 */
export class DeadlineSpanProcessor {
  readonly #stop: () => void
  #hasOnEnding = false

  /** @throws TypeError that names the option which does not exist or cannot be read. */
  constructor(options: SpanOptions = {}) {
    this.#stop = recordSpans(options)
  }

  /** Called by the SDK. */
  onStart(span: Span, parent: Context): void {
    guarded('DeadlineSpanProcessor.onStart', () => this.#start(span, parent), undefined)
  }

  /** Called by the SDK from 2.3 on, while the span can still be written. */
  onEnding(span: Span): void {
    this.#hasOnEnding = true
    guarded('DeadlineSpanProcessor.onEnding', () => writeBeforeEnd(span), undefined)
  }

  /** Called by the SDK, too late for us. */
  onEnd(_span: unknown): void {}

  /** Does nothing: spans are exported by others. */
  forceFlush(): Promise<void> {
    return Promise.resolve()
  }

  /** Stops making spans of operations and of calls to models. */
  shutdown(): Promise<void> {
    this.#stop()
    return Promise.resolve()
  }

  #start(span: Span, parent: Context): void {
    notePlace(span, parent)
    if (isOwn(parent)) return
    const deadline = currentDeadline()
    const remaining = wholeMs(deadline?.remaining())
    if (deadline === undefined || remaining === undefined) return
    const startedAt = deadline.elapsed()
    span.setAttribute(spanAttributes.remaining, remaining)
    const writeEnd = (): void => {
      span.setAttribute(spanAttributes.consumed, wholeMs(deadline.elapsed() - startedAt) ?? 0)
      const { reason } = deadline
      if (reason === undefined || !isAbandoned(reason.outcome)) return
      // an instrumentation tells of our own abort as of an error
      const type = attributeOf(span, spanAttributes.errorType)
      if (type !== reason.code && type !== reason.name) return
      span.setAttribute(spanAttributes.outcome, reason.outcome)
      clearStatus(span)
    }
    beforeEnd(span, writeEnd, { patch: !this.#hasOnEnding })
  }
}
