import type { TextMapPropagator } from '@opentelemetry/api'
import { baggageHeader } from './w3c-baggage.ts'
import { traceContext } from './w3c-trace-context.ts'
import { warnOnce } from './guarded.ts'

const known: Readonly<Record<string, TextMapPropagator | undefined>> = {
  tracecontext: traceContext,
  baggage: baggageHeader,
  none: undefined,
}

/**
 * The propagators that OTEL_PROPAGATORS names, W3C's two if it names none. Others have packages of their own, and are warned
 * about: they can be given as `inner`.
 */
export function usualPropagators(names: string = process.env['OTEL_PROPAGATORS'] ?? ''): TextMapPropagator {
  const wanted = names
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const propagators = (wanted.length === 0 ? ['tracecontext', 'baggage'] : wanted).flatMap((name) => {
    if (!Object.hasOwn(known, name)) warnOfUnknown(name)
    return known[name] ?? []
  })
  return {
    inject(context, carrier, setter) {
      for (const propagator of propagators) propagator.inject(context, carrier, setter)
    },
    extract: (context, carrier, getter) =>
      propagators.reduce((extracted, propagator) => propagator.extract(extracted, carrier, getter), context),
    fields: () => propagators.flatMap((propagator) => propagator.fields()),
  }
}

function warnOfUnknown(name: string): void {
  warnOnce(`OTEL_PROPAGATORS=${name}`, 'give its propagator to `new DeadlinePropagator({ inner })`')
}
