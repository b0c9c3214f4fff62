import { request as nodeRequest } from 'node:http'
import {
  type BaggageEntry,
  context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  propagation,
  ROOT_CONTEXT,
} from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import { Deadline, operation, runWithDeadline } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { afterAll, expect, test } from 'vitest'
import { budgetBaggageIn, DeadlinePropagator, type PropagatorOptions } from '../src/index.ts'
import { recordingServer } from './recording-server.ts'

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
afterAll(() => context.disable())

/** What a service called `here` sends on, under its own deadline or that of a request with these headers. */
async function sentOn({
  headers,
  options = {},
  ambient = {},
}: {
  readonly headers?: Readonly<Record<string, string>>
  readonly options?: PropagatorOptions
  readonly ambient?: Readonly<Record<string, BaggageEntry>>
}): Promise<readonly string[]> {
  await using next = await recordingServer()
  using propagator = new DeadlinePropagator({ service: 'here', ...options })
  const call = async (): Promise<void> => {
    const active = propagation.setBaggage(context.active(), propagation.createBaggage(ambient))
    await context.with(Object.keys(ambient).length === 0 ? context.active() : active, () => fetch(next.url))
  }
  if (headers === undefined) await runWithDeadline(Deadline.after(3_000), call)
  else {
    const entry = createServer(
      withDeadline(
        (request, response) => {
          const extracted = propagator.extract(ROOT_CONTEXT, request.headers, defaultTextMapGetter)
          void context.with(extracted, call).finally(() => response.end())
        },
        { default: '2s' },
      ),
    ).listen(0, '127.0.0.1')
    await once(entry, 'listening')
    const { port } = entry.address() as { readonly port: number }
    await fetch(`http://127.0.0.1:${port}`, { headers })
    entry.close()
    entry.closeAllConnections()
  }
  return next.values('/', 'baggage')
}

test('a service that sets a budget tells the next one how large it was and who set it', async () => {
  expect(await sentOn({})).toEqual(['deadline.total_ms=3000,deadline.origin=here,deadline.hop=1'])
  expect(await sentOn({ headers: {} })).toEqual([
    'deadline.total_ms=2000,deadline.origin=here,deadline.hop=1',
  ])
})

test('a service in between passes on what it was told, one hop further', async () => {
  const headers = {
    'x-request-timeout-ms': '900',
    baggage: 'deadline.total_ms=3000,deadline.origin=shop%20front,deadline.hop=2,user=7',
  }
  expect(await sentOn({ headers })).toEqual([
    'deadline.total_ms=3000,deadline.origin=shop%20front,deadline.hop=3',
  ])
})

test("a stranger's word about a budget that is not his counts for nothing", async () => {
  const headers = { baggage: 'deadline.total_ms=9999999,deadline.origin=evil,deadline.hop=9' }
  expect(await sentOn({ headers })).toEqual(['deadline.total_ms=2000,deadline.origin=here,deadline.hop=1'])
})

test('a caller that told nothing is no origin', async () => {
  const headers = { 'x-request-timeout-ms': '900' }
  expect(await sentOn({ headers })).toEqual(['deadline.total_ms=900,deadline.hop=1'])
})

test.each([
  'deadline.total_ms=-1,deadline.origin=%0A,deadline.hop=1.5',
  'deadline.total_ms=1e3,deadline.hop=0x1,deadline.origin=',
  `deadline.total_ms=${'9'.repeat(11)},deadline.hop=1000,deadline.origin=${'o'.repeat(129)}`,
  'deadline.total_ms,deadline.hop,%ZZ=%ZZ,=,;',
  `${','.repeat(10_000)}deadline.total_ms=%ZZ`,
])('baggage that is malformed or hostile is as none: %s', async (baggage) => {
  const headers = { 'x-request-timeout-ms': '900', baggage }
  expect(await sentOn({ headers })).toEqual(['deadline.total_ms=900,deadline.hop=1'])
  using propagator = new DeadlinePropagator()
  expect(budgetBaggageIn(propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter))).toEqual({})
})

test('the hops are counted to 999', async () => {
  const headers = { 'x-request-timeout-ms': '900', baggage: 'deadline.hop=999' }
  expect(await sentOn({ headers })).toEqual(['deadline.total_ms=900,deadline.hop=999'])
})

test('hosts that are not trusted, and propagators without baggage, get none', async () => {
  expect(await sentOn({ options: { trust: ['*.internal'] } })).toEqual([])
  const nothing = { inject() {}, extract: <C>(unchanged: C): C => unchanged, fields: () => [] }
  expect(await sentOn({ options: { inner: nothing } })).toEqual([])
})

test('work in the background of no request is known by its first operation', async () => {
  await using next = await recordingServer()
  using _propagator = new DeadlinePropagator({ service: 'worker' })
  await runWithDeadline(Deadline.after('1m'), () =>
    operation('outer', { timeout: '10s' }, () =>
      operation('inner', { timeout: '1s' }, () => fetch(next.url)),
    ),
  )
  const [sent = ''] = next.values('/', 'baggage')
  expect(sent).toMatch(/^deadline.total_ms=(60000|59\d{3}),deadline.origin=worker,deadline.hop=1$/)
})

const entries = (count: number, length: number): Record<string, BaggageEntry> =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`k${index}`, { value: 'v'.repeat(length) }]),
  )

test('a full baggage of the user is never displaced, and ours goes whole or not at all', async () => {
  const ours = 'deadline.total_ms=3000,deadline.origin=here,deadline.hop=1'
  expect(await sentOn({ ambient: entries(177, 1) })).toEqual([ours])
  expect(await sentOn({ ambient: entries(178, 1) })).toEqual([])
  expect(await sentOn({ ambient: entries(200, 1) })).toEqual([])
  expect(await sentOn({ ambient: entries(2, 4_000) })).toEqual([ours])
  expect(await sentOn({ ambient: entries(3, 2_720) })).toEqual([])
})

test.each([{ first: 'instrumentation' }, { first: 'propagator' }])(
  'ours stands beside that of the user, with the $first set up first',
  async ({ first }) => {
    await using next = await recordingServer()
    let instrumentation = first === 'instrumentation' ? new UndiciInstrumentation() : undefined
    using propagator = new DeadlinePropagator({ service: 'here' })
    instrumentation ??= new UndiciInstrumentation()
    propagation.setGlobalPropagator(propagator)
    const active = propagation.setBaggage(
      ROOT_CONTEXT,
      propagation.createBaggage({ user: { value: '7' }, 'deadline.hop': { value: '4' } }),
    )
    await runWithDeadline(Deadline.after(3_000), () => context.with(active, () => fetch(next.url)))
    instrumentation.disable()
    propagation.disable()
    const sent = next.values('/', 'baggage').join(',').split(',')
    expect(sent.toSorted()).toEqual([
      'deadline.hop=1',
      'deadline.origin=here',
      'deadline.total_ms=3000',
      'user=7',
    ])
  },
)

test('ours is added to a baggage that the user wrote himself', async () => {
  await using next = await recordingServer()
  using _propagator = new DeadlinePropagator({ service: 'here' })
  using _another = new DeadlinePropagator({ service: 'here' })
  await runWithDeadline(
    Deadline.after(3_000),
    () =>
      new Promise<void>((resolve, reject) => {
        const sending = nodeRequest(next.url, { headers: { baggage: ['a=1', 'b=2'] } }, (response) =>
          response.resume().on('end', resolve),
        )
        sending.on('error', reject)
        sending.end()
      }),
  )
  expect(next.values('/', 'baggage')).toEqual([
    'a=1,b=2,deadline.total_ms=3000,deadline.origin=here,deadline.hop=1',
  ])
})

test('ours is not added to one that is full', async () => {
  await using next = await recordingServer()
  using _propagator = new DeadlinePropagator({ service: 'here' })
  const full = Array.from({ length: 178 }, (_, index) => `k${index}=v`).join(',')
  await runWithDeadline(Deadline.after(3_000), () => fetch(next.url, { headers: { baggage: full } }))
  expect(next.values('/', 'baggage')).toEqual([full])
})

test('what came in about a budget is injected nowhere, since nobody knows where that goes', () => {
  using propagator = new DeadlinePropagator()
  const active = propagation.setBaggage(
    ROOT_CONTEXT,
    propagation.createBaggage({ 'deadline.origin': { value: 'gateway' }, user: { value: '7' } }),
  )
  const carrier = {}
  propagator.inject(active, carrier, defaultTextMapSetter)
  expect(carrier).toEqual({ baggage: 'user=7' })
})

test('the environment names the service', async () => {
  const { OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES } = process.env
  try {
    process.env['OTEL_RESOURCE_ATTRIBUTES'] = 'deployment=x,service.name=shop%20front,host=y'
    expect(await sentOn({ options: { service: undefined } })).toEqual([
      'deadline.total_ms=3000,deadline.origin=shop%20front,deadline.hop=1',
    ])
    process.env['OTEL_SERVICE_NAME'] = 'till'
    expect((await sentOn({ options: { service: undefined } }))[0]).toContain('deadline.origin=till')
  } finally {
    restore('OTEL_SERVICE_NAME', OTEL_SERVICE_NAME)
    restore('OTEL_RESOURCE_ATTRIBUTES', OTEL_RESOURCE_ATTRIBUTES)
  }
})

function restore(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name]
  else process.env[name] = value
}
