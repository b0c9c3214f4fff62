import {
  type Baggage,
  type BaggageEntry,
  baggageEntryMetadataFromString,
  type Context,
  propagation,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
} from '@opentelemetry/api'
import { isTracingSuppressed } from './suppressed.ts'

/** What W3C Baggage, and OpenTelemetry's own propagator, allow: entries, bytes an entry, bytes in all. */
export const baggageLimits: {
  readonly entries: number
  readonly entryLength: number
  readonly length: number
} = { entries: 180, entryLength: 4_096, length: 8_192 }

/** The `baggage` header, as W3C Baggage has it. */
export const baggageHeader: TextMapPropagator = {
  inject(context: Context, carrier: unknown, setter: TextMapSetter): void {
    const baggage = propagation.getBaggage(context)
    if (baggage === undefined || isTracingSuppressed(context)) return
    const header = formatBaggage(baggage)
    if (header !== '') setter.set(carrier, 'baggage', header)
  },

  extract(context: Context, carrier: unknown, getter: TextMapGetter): Context {
    const header = getter.get(carrier, 'baggage')
    if (header === undefined) return context
    const entries = readBaggage([header].flat().join(','))
    if (Object.keys(entries).length === 0) return context
    return propagation.setBaggage(context, propagation.createBaggage(entries))
  },

  fields: () => ['baggage'],
}

/** The header's value, with as many entries as the limits allow. */
export function formatBaggage(baggage: Baggage): string {
  let header = ''
  let count = 0
  for (const [name, { value, metadata }] of baggage.getAllEntries()) {
    if (count === baggageLimits.entries) break
    const pair = encodedPair(name, value)
    if (pair === undefined) continue
    const properties = metadata === undefined ? '' : metadata.toString()
    // they are sent as they are, and one character that no header may have would fail the call
    const entry = properties !== '' && sendable.test(properties) ? `${pair};${properties}` : pair
    if (entry.length > baggageLimits.entryLength) continue
    count += 1
    const longer = header === '' ? entry : `${header},${entry}`
    if (longer.length <= baggageLimits.length) header = longer
  }
  return header
}

const sendable = /^[\t\x20-\x7e]*$/

/** `undefined` where it cannot be said in UTF-8: half of an emoji, left by whoever cut a name short. */
function encodedPair(name: string, value: string): string | undefined {
  try {
    return `${encodeURIComponent(name)}=${encodeURIComponent(value)}`
  } catch {
    return undefined
  }
}

/** The entries that can be read, within the limits; what cannot is passed over. */
function readBaggage(header: string): Record<string, BaggageEntry> {
  const entries: Record<string, BaggageEntry> = Object.create(null)
  let count = 0
  let length = 0
  for (const member of membersOf(header)) {
    if (count === baggageLimits.entries) break
    const entry = member.length > baggageLimits.entryLength ? undefined : readMember(member)
    if (entry === undefined) continue
    length += member.length + (count === 0 ? 0 : 1)
    if (length > baggageLimits.length) break
    count += 1
    entries[entry.name] = entry.entry
  }
  return entries
}

/** One by one: a hostile header of a thousand times the limit is not taken apart whole. */
function* membersOf(header: string): Generator<string> {
  for (let start = 0; start < header.length;) {
    const comma = header.indexOf(',', start)
    const end = comma < 0 ? header.length : comma
    yield header.slice(start, end)
    start = end + 1
  }
}

function readMember(member: string): { readonly name: string; readonly entry: BaggageEntry } | undefined {
  const semicolon = member.indexOf(';')
  const pair = semicolon < 0 ? member : member.slice(0, semicolon)
  const equals = pair.indexOf('=')
  const name = decoded(pair.slice(0, Math.max(equals, 0)))
  const value = decoded(pair.slice(equals + 1))
  if (name === undefined || value === undefined) return undefined
  const properties = semicolon < 0 ? '' : member.slice(semicolon + 1)
  if (properties === '') return { name, entry: { value } }
  return { name, entry: { value, metadata: baggageEntryMetadataFromString(properties) } }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.trim()) || undefined
  } catch {
    return undefined
  }
}
