import { type Context, createContextKey, type Span, trace } from '@opentelemetry/api'

/** Marks the context in which we start a span of our own: we have written on it ourselves what there is to say. */
const ownKey = createContextKey('timebudget own span')

export function withOwnMark(parent: Context): Context {
  return parent.setValue(ownKey, true)
}

export function isOwn(parent: Context): boolean {
  return parent.getValue(ownKey) === true
}

/** Under this key instrumentations of servers keep the span of the whole request, whatever middleware is active within. */
const rpcMetadataKey = createContextKey('OpenTelemetry SDK Context Key RPC_METADATA')

/** The outermost span of this process above each span, as far as a span processor has seen them start. */
const localRoots = new WeakMap<Span, Span>()

/** Notes where a span that starts stands. */
export function notePlace(span: Span, parent: Context): void {
  const above = trace.getSpan(parent)
  localRoots.set(span, (above === undefined ? undefined : localRoots.get(above)) ?? span)
}

/** The span that stands for the whole request in whose context the code runs, if one is there. */
export function entrySpan(running: Context): Span | undefined {
  const active = trace.getSpan(running)
  return spanOfRpc(running) ?? (active === undefined ? undefined : (localRoots.get(active) ?? active))
}

function spanOfRpc(running: Context): Span | undefined {
  const metadata = running.getValue(rpcMetadataKey)
  if (typeof metadata !== 'object' || metadata === null || !('span' in metadata)) return undefined
  return isSpan(metadata.span) ? metadata.span : undefined
}

function isSpan(value: unknown): value is Span {
  return typeof value === 'object' && value !== null && 'setAttribute' in value && 'spanContext' in value
}
