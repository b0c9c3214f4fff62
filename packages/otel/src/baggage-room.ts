import type { Baggage } from '@opentelemetry/api'
import { baggageLimits, formatBaggage } from './w3c-baggage.ts'

/**
 * Whether more entries fit beside the user's own, of which none may be displaced: those in the header already, and those in
 * the context, which an instrumentation may be about to write.
 */
export function hasRoomFor(
  entries: string,
  { written, baggage }: { readonly written: string | undefined; readonly baggage: Baggage | undefined },
): boolean {
  const isFullOf = (header: string): boolean =>
    countOf(header) + countOf(entries) > baggageLimits.entries ||
    header.length + 1 + entries.length > baggageLimits.length
  return !isFullOf(written ?? '') && !isFullOf(baggage === undefined ? '' : formatBaggage(baggage))
}

function countOf(header: string): number {
  return header === '' ? 0 : header.split(',').length
}
