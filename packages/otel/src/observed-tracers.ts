import {
  type Context,
  context,
  type Span,
  type SpanOptions,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api'

/** Who is told of every span that is recorded, as the SDK tells its span processors. */
export interface SpanObserver {
  onStart(span: Span, parent: Context): void
}

/**
 * A tracer provider that tells an observer of every span. For an SDK that is set up by the environment: given a span
 * processor of ours, it would make none for the exporters that the environment asks for.
 */
export class ObservedTracerProvider implements TracerProvider {
  readonly #provider: TracerProvider
  readonly #observer: SpanObserver

  constructor(provider: TracerProvider, observer: SpanObserver) {
    this.#provider = provider
    this.#observer = observer
  }

  getTracer(...args: Parameters<TracerProvider['getTracer']>): Tracer {
    return new ObservedTracer(this.#provider.getTracer(...args), this.#observer)
  }
}

class ObservedTracer implements Tracer {
  readonly #tracer: Tracer
  readonly #observer: SpanObserver

  constructor(tracer: Tracer, observer: SpanObserver) {
    this.#tracer = tracer
    this.#observer = observer
  }

  startSpan(name: string, options?: SpanOptions, parent: Context = context.active()): Span {
    const span = this.#tracer.startSpan(name, options, parent)
    if (span.isRecording())
      this.#observer.onStart(span, options?.root === true ? trace.deleteSpan(parent) : parent)
    return span
  }

  startActiveSpan<F extends (span: Span) => unknown>(name: string, work: F): ReturnType<F>
  startActiveSpan<F extends (span: Span) => unknown>(
    name: string,
    options: SpanOptions,
    work: F,
  ): ReturnType<F>
  startActiveSpan<F extends (span: Span) => unknown>(
    name: string,
    options: SpanOptions,
    parent: Context,
    work: F,
  ): ReturnType<F>
  startActiveSpan(name: string, ...rest: readonly unknown[]): unknown {
    const work = rest.at(-1) as (span: Span) => unknown
    const [options, given] = rest.slice(0, -1) as [SpanOptions?, Context?]
    const parent = given ?? context.active()
    const span = this.startSpan(name, options, parent)
    return context.with(trace.setSpan(parent, span), work, undefined, span)
  }
}

/** A tracer provider as the API keeps it, which hands on to the one that was registered. */
interface TracerProviderProxy {
  getDelegate(): TracerProvider
  setDelegate(provider: TracerProvider): void
}

/** Tells an observer of every span of the global tracer provider from now on; `false` if that is done already, or cannot be. */
export function observeTracers(observer: SpanObserver): boolean {
  const proxy: TracerProvider & Partial<TracerProviderProxy> = trace.getTracerProvider()
  const provider = proxy.getDelegate?.()
  if (provider === undefined || provider instanceof ObservedTracerProvider) return false
  proxy.setDelegate?.(new ObservedTracerProvider(provider, observer))
  return true
}

/** Whether the spans of the global tracer provider are observed already. */
export function areTracersObserved(): boolean {
  const proxy: TracerProvider & Partial<TracerProviderProxy> = trace.getTracerProvider()
  return proxy.getDelegate?.() instanceof ObservedTracerProvider
}
