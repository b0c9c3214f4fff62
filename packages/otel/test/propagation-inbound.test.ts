import {
  defaultTextMapGetter,
  defaultTextMapSetter,
  propagation,
  ROOT_CONTEXT,
  trace,
} from '@opentelemetry/api'
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core'
import { expect, test } from 'vitest'
import { deadlineIn, DeadlinePropagator, type PropagatorOptions } from '../src/index.ts'

type Carrier = Record<string, string | string[]>

function remainingOf(
  carrier: unknown,
  options: PropagatorOptions = {},
  context = ROOT_CONTEXT,
): number | undefined {
  using propagator = new DeadlinePropagator(options)
  return deadlineIn(propagator.extract(context, carrier, defaultTextMapGetter))?.remaining()
}

test.each<{ headers: Carrier; earliest: number }>([
  { headers: { 'x-request-timeout-ms': '3000' }, earliest: 3_000 },
  { headers: { 'x-request-timeout-ms': '3000', 'grpc-timeout': '2S' }, earliest: 2_000 },
  { headers: { 'x-request-timeout-ms': ['3000', '1000'] }, earliest: 1_000 },
  { headers: { 'x-request-timeout-ms': '3000, 1000' }, earliest: 1_000 },
  { headers: { 'connect-timeout-ms': '700' }, earliest: 700 },
])(
  'the earliest deadline among the headers of a caller is in the context: $headers',
  ({ headers, earliest }) => {
    expect(remainingOf(headers)).toBeGreaterThan(earliest - 200)
    expect(remainingOf(headers)).toBeLessThanOrEqual(earliest)
  },
)

test('nobody is granted more than the maximum', () => {
  const hour = { 'x-request-timeout-ms': '3600000' }
  expect(remainingOf(hour)).toBeLessThanOrEqual(300_000)
  expect(remainingOf(hour, { max: '2s' })).toBeLessThanOrEqual(2_000)
})

test('a deadline that had passed when it arrived has expired', () => {
  expect(remainingOf({ 'x-request-timeout-ms': '0' })).toBe(0)
})

test.each<{ headers: unknown }>([
  { headers: {} },
  { headers: undefined },
  { headers: 7 },
  { headers: { 'x-request-timeout-ms': '-1', 'x-request-deadline': 'soon', 'grpc-timeout': '' } },
  { headers: { 'x-request-timeout-ms': ['1e3', ''] } },
  { headers: { 'x-request-timeout-ms': 'x'.repeat(100_000) } },
  { headers: { baggage: 'deadline.total_ms=1' } },
  {
    headers: {
      get 'x-request-timeout-ms'(): string {
        throw new Error('hostile')
      },
    },
  },
])('what cannot be read is no deadline, and never thrown at', ({ headers }) => {
  expect(remainingOf(headers)).toBeUndefined()
})

test('a second reading of the same headers, however late, grants no more', async () => {
  using propagator = new DeadlinePropagator()
  const headers = { 'x-request-timeout-ms': '500' }
  const first = deadlineIn(propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter))
  await new Promise((resolve) => setTimeout(resolve, 50))
  const second = deadlineIn(propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter))
  expect(second?.remaining()).toBeLessThanOrEqual(460)
  expect(second).toBe(first)
})

test('a context that has a deadline keeps it, unless the headers bring an earlier one', () => {
  using propagator = new DeadlinePropagator()
  using registeredTwice = new DeadlinePropagator()
  const extract = (context: typeof ROOT_CONTEXT, timeout: string): typeof ROOT_CONTEXT =>
    registeredTwice.extract(context, { 'x-request-timeout-ms': timeout }, defaultTextMapGetter)
  const held = propagator.extract(ROOT_CONTEXT, { 'x-request-timeout-ms': '1000' }, defaultTextMapGetter)
  expect(extract(held, '9000')).toBe(held)
  expect(extract(held, '1000')).toBe(held)
  expect(deadlineIn(extract(held, '400'))?.remaining()).toBeLessThanOrEqual(400)
})

test('headers that are used for another request are read anew', () => {
  using propagator = new DeadlinePropagator()
  const reused: Carrier = { 'x-request-timeout-ms': '100' }
  propagator.extract(ROOT_CONTEXT, reused, defaultTextMapGetter)
  reused['x-request-timeout-ms'] = '5000'
  const context = propagator.extract(ROOT_CONTEXT, reused, defaultTextMapGetter)
  expect(deadlineIn(context)?.remaining()).toBeGreaterThan(4_000)
})

const spanContext = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 }

test('trace context and baggage go through as without it, whether the propagator is the usual one or given', () => {
  const official = new CompositePropagator({
    propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
  })
  const context = propagation.setBaggage(
    trace.setSpanContext(ROOT_CONTEXT, spanContext),
    propagation.createBaggage({ user: { value: 'a b' } }),
  )
  for (const options of [{}, { inner: official }]) {
    using propagator = new DeadlinePropagator(options)
    const written: Carrier = {}
    const expected: Carrier = {}
    propagator.inject(context, written, defaultTextMapSetter)
    official.inject(context, expected, defaultTextMapSetter)
    expect(written).toEqual(expected)
    const read = propagator.extract(ROOT_CONTEXT, written, defaultTextMapGetter)
    expect(trace.getSpanContext(read)).toEqual({ ...spanContext, isRemote: true })
    expect(propagation.getBaggage(read)?.getEntry('user')?.value).toBe('a b')
  }
})

test('a propagator inside that throws costs nothing but what it would have carried', async () => {
  const fail = (): never => {
    throw new Error('broken')
  }
  let isBroken = false
  using propagator = new DeadlinePropagator({
    inner: { inject: fail, extract: fail, fields: () => (isBroken ? fail() : []) },
  })
  isBroken = true
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
  propagator.inject(ROOT_CONTEXT, {}, defaultTextMapSetter)
  const context = propagator.extract(ROOT_CONTEXT, { 'x-request-timeout-ms': '500' }, defaultTextMapGetter)
  expect(deadlineIn(context)?.remaining()).toBeLessThanOrEqual(500)
  expect(propagator.fields()).toEqual([])
  expect((await warned).message).toMatch(/inject of the inner propagator failed.*broken/s)
})

test('its fields are all headers that a call may carry because of it', () => {
  using propagator = new DeadlinePropagator()
  expect(propagator.fields().toSorted()).toEqual([
    'baggage',
    'traceparent',
    'tracestate',
    'x-request-attempt',
    'x-request-deadline',
    'x-request-timeout-ms',
  ])
})

test.each([
  { options: { injct: true }, names: /^injct: no such option/ },
  { options: { inject: 'api.internal' }, names: /^inject: / },
  { options: { trust: [7] }, names: /^trust: / },
  { options: { accept: ['x-deadline'] }, names: /^accept: no codec is called 'x-deadline'/ },
  { options: { emit: 'grpc-timeout' }, names: /^emit: / },
  { options: { max: -1 }, names: /max/ },
  { options: { service: '' }, names: /^service: / },
  { options: { inner: {} }, names: /^inner: / },
])('an unknown or unreadable option is a TypeError that names it: $names', ({ options, names }) => {
  const construct = (): unknown => new DeadlinePropagator(options as unknown as PropagatorOptions)
  expect(construct).toThrow(TypeError)
  expect(construct).toThrow(names)
})
