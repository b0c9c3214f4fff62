import { type Context, createContextKey } from '@opentelemetry/api'

// the SDK's own key, which it does not export from a package of ours: equal descriptions make equal keys
const suppressed = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING')

/** Whether it is telemetry's own work that runs, an exporter's request for instance. */
export function isTracingSuppressed(context: Context): boolean {
  return context.getValue(suppressed) === true
}
