import { format } from 'node:util'

const warned = new Set<string>()

/**
 * Runs a hook of ours inside somebody else's code, so that it can never throw: OpenTelemetry lets what a span processor,
 * a propagator or an instrument throws fall upon the request. Warned about once for each name; `fallback` is given instead.
 */
export function guarded<T>(name: string, hook: () => T, fallback: T): T {
  try {
    return hook()
  } catch (error) {
    warnOnce(name, error)
    return fallback
  }
}

/** Warns of a failure of telemetry, once a process for each name. */
export function warnOnce(name: string, error: unknown): void {
  if (warned.has(name)) return
  warned.add(name)
  // not String(error): that throws on an object without a prototype
  process.emitWarning(
    format('telemetry: %s failed, and will not be told of again: %s', name, error),
    'TimeBudgetWarning',
  )
}
