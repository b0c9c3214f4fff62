import { type Context, propagation } from '@opentelemetry/api'

/** What travels in W3C baggage about a request's budget, for display only: nothing is enforced from it. */
export interface BudgetBaggage {
  /** The budget of the request where it entered the chain, in whole milliseconds. */
  readonly totalMs?: number | undefined
  /** The service that set it. */
  readonly origin?: string | undefined
  /** How many services it has come through: 1 behind the entry. */
  readonly hop?: number | undefined
}

const names = { totalMs: 'deadline.total_ms', origin: 'deadline.origin', hop: 'deadline.hop' } as const
const ours: readonly string[] = Object.values(names)

/** Written by anybody, so taken only for what it says if it is of the right form. */
const longestOrigin = 128
const printable = /^[^\p{Cc}\p{Cf}\p{Cs}]+$/u

/**
 * What the caller of the running request told about its budget in baggage; what cannot be read is left out.
 *
 *     logger.info(budgetBaggageIn(context.active())) // { totalMs: 3000, origin: 'gateway', hop: 2 }
 */
export function budgetBaggageIn(context: Context): BudgetBaggage {
  const baggage = propagation.getBaggage(context)
  if (baggage === undefined) return {}
  const totalMs = wholeNumber(baggage.getEntry(names.totalMs)?.value, 10)
  const hop = wholeNumber(baggage.getEntry(names.hop)?.value, 3)
  const origin = baggage.getEntry(names.origin)?.value
  return {
    ...(totalMs === undefined ? {} : { totalMs }),
    ...(origin !== undefined && isName(origin) ? { origin } : {}),
    ...(hop === undefined ? {} : { hop }),
  }
}

function wholeNumber(value: unknown, digits: number): number | undefined {
  return typeof value === 'string' && value.length <= digits && /^\d+$/.test(value)
    ? Number(value)
    : undefined
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value.length <= longestOrigin && printable.test(value)
}

/** The context without our entries: those that came in are the caller's, and not for every host. */
export function withoutBudgetBaggage(context: Context): Context {
  const baggage = propagation.getBaggage(context)
  if (baggage === undefined || !ours.some((name) => baggage.getEntry(name) !== undefined)) return context
  return propagation.setBaggage(context, baggage.removeEntries(...ours))
}

/** The entries as a part of the `baggage` header. */
export function formatBudgetBaggage({ totalMs, origin, hop }: BudgetBaggage): string {
  const values = [
    totalMs === undefined ? [] : `${names.totalMs}=${totalMs}`,
    origin === undefined || !isName(origin) ? [] : `${names.origin}=${encodeURIComponent(origin)}`,
    hop === undefined ? [] : `${names.hop}=${hop}`,
  ]
  return values.flat().join(',')
}

/** Whether a `baggage` header has entries of ours. */
export function hasBudgetBaggage(header: string): boolean {
  return /(?:^|,)\s*deadline\.(?:total_ms|origin|hop)\s*=/.test(header)
}
