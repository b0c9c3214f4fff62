import {
  baggageEntryMetadataFromString,
  type BaggageEntry,
  defaultTextMapGetter,
  defaultTextMapSetter,
  propagation,
  ROOT_CONTEXT,
  trace,
} from '@opentelemetry/api'
import { suppressTracing, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core'
import { expect, test } from 'vitest'
import { usualPropagators } from '../src/usual-propagators.ts'
import { baggageHeader } from '../src/w3c-baggage.ts'
import { traceContext } from '../src/w3c-trace-context.ts'

const theirTrace = new W3CTraceContextPropagator()
const theirBaggage = new W3CBaggagePropagator()

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'

test.each<{ traceparent: string | string[]; tracestate?: string | string[] }>([
  { traceparent: `00-${traceId}-${spanId}-01` },
  { traceparent: `00-${traceId}-${spanId}-00`, tracestate: 'a=1,b=2' },
  { traceparent: [`00-${traceId}-${spanId}-01`, 'x'], tracestate: ['a=1', 'b=2'] },
  { traceparent: ` 00-${traceId}-${spanId}-01 ` },
  { traceparent: `01-${traceId}-${spanId}-03-more` },
  { traceparent: `00-${traceId}-${spanId}-01-more` },
  { traceparent: `ff-${traceId}-${spanId}-01` },
  { traceparent: `00-${'0'.repeat(32)}-${spanId}-01` },
  { traceparent: `00-${traceId}-${'0'.repeat(16)}-01` },
  { traceparent: `00-${traceId.toUpperCase()}-${spanId}-01` },
  { traceparent: '' },
  { traceparent: 'x'.repeat(100_000) },
  { traceparent: `00-${traceId}-${spanId}-01`, tracestate: '=,=' },
])('trace context is read and written as OpenTelemetry does: $traceparent', (headers) => {
  const ours = traceContext.extract(ROOT_CONTEXT, headers, defaultTextMapGetter)
  const theirs = theirTrace.extract(ROOT_CONTEXT, headers, defaultTextMapGetter)
  const inText = (context: typeof ROOT_CONTEXT): unknown => {
    const { traceState, ...span } = trace.getSpanContext(context) ?? {}
    return { ...span, traceState: traceState?.serialize() }
  }
  expect(inText(ours)).toEqual(inText(theirs))
  const [written, expected] = [{}, {}]
  traceContext.inject(ours, written, defaultTextMapSetter)
  theirTrace.inject(theirs, expected, defaultTextMapSetter)
  expect(written).toEqual(expected)
})

const many = (count: number, length = 1): string =>
  Array.from({ length: count }, (_, index) => `k${index}=${'v'.repeat(length)}`).join(',')

test.each<{ name: string; baggage: string | string[] }>([
  { name: 'plain', baggage: 'a=1, b = two%20words ;p=1;q,c=3' },
  { name: 'in two lines', baggage: ['a=1,b=2', 'c=3'] },
  { name: 'malformed in places', baggage: 'a,=b,c=,d=1,%ZZ=1,e=%ZZ,,;,f=2;,=,g=h=i' },
  { name: 'with names of every object', baggage: 'constructor=1,toString=2' },
  { name: 'of 181 entries', baggage: many(181) },
  { name: 'of 8,193 bytes', baggage: many(9, 1_000) },
  { name: 'with an entry of 4,097 bytes', baggage: `a=1,b=${'v'.repeat(4_095)},c=2` },
  { name: 'twice the same', baggage: 'a=1,a=2' },
  { name: 'empty', baggage: '' },
])('baggage is read and written as OpenTelemetry does: $name', ({ baggage }) => {
  const ours = baggageHeader.extract(ROOT_CONTEXT, { baggage }, defaultTextMapGetter)
  const theirs = theirBaggage.extract(ROOT_CONTEXT, { baggage }, defaultTextMapGetter)
  const inText = (context: typeof ROOT_CONTEXT): unknown =>
    propagation
      .getBaggage(context)
      ?.getAllEntries()
      .map(([name, { value, metadata }]) => [name, value, metadata?.toString()])
  expect(inText(ours)).toEqual(inText(theirs))
  const [written, expected] = [{}, {}]
  baggageHeader.inject(ours, written, defaultTextMapSetter)
  theirBaggage.inject(theirs, expected, defaultTextMapSetter)
  expect(written).toEqual(expected)
})

test.each<{ name: string; entries: Record<string, BaggageEntry> }>([
  {
    name: '200 entries',
    entries: Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`k${i}`, { value: 'v' }])),
  },
  { name: 'a long one among short ones', entries: { a: { value: 'v'.repeat(5_000) }, b: { value: '1' } } },
  {
    name: 'more than fits',
    entries: Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [`k${i}`, { value: 'v'.repeat(900 - i) }]),
    ),
  },
  {
    name: 'with metadata',
    entries: { 'a b': { value: 'ü,;', metadata: baggageEntryMetadataFromString('p=1') } },
  },
])('baggage of an application is cut to the limits as OpenTelemetry does: $name', ({ entries }) => {
  const context = propagation.setBaggage(ROOT_CONTEXT, propagation.createBaggage(entries))
  const [written, expected] = [{}, {}]
  baggageHeader.inject(context, written, defaultTextMapSetter)
  theirBaggage.inject(context, expected, defaultTextMapSetter)
  expect(written).toEqual(expected)
})

test('a megabyte of commas is read in no time', () => {
  const started = performance.now()
  baggageHeader.extract(ROOT_CONTEXT, { baggage: ','.repeat(1_000_000) }, defaultTextMapGetter)
  expect(performance.now() - started).toBeLessThan(1_000)
})

test('nothing is written for what telemetry itself sends', () => {
  const context = suppressTracing(
    propagation.setBaggage(
      trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1 }),
      propagation.createBaggage({ a: { value: '1' } }),
    ),
  )
  const written = {}
  usualPropagators('').inject(context, written, defaultTextMapSetter)
  expect(written).toEqual({})
})

test('OTEL_PROPAGATORS decides what is carried, and what it names beyond W3C is warned about', async () => {
  expect(usualPropagators('').fields()).toEqual(['traceparent', 'tracestate', 'baggage'])
  expect(usualPropagators(' baggage ').fields()).toEqual(['baggage'])
  expect(usualPropagators('none').fields()).toEqual([])
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
  expect(usualPropagators('b3, tracecontext').fields()).toEqual(['traceparent', 'tracestate'])
  expect((await warned).message).toMatch(/OTEL_PROPAGATORS=b3 .*inner/)
})
