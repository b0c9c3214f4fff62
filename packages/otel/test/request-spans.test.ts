import { connect } from 'node:net'
import { SpanStatusCode } from '@opentelemetry/api'
import type { SpanProcessor } from '@opentelemetry/sdk-trace-base'
import { requestFinished, type RequestFinished } from '@timebudget/core'
import { withDeadline } from '@timebudget/core/server'
import { describe, expect, onTestFinished, test } from 'vitest'
import { DeadlineSpanProcessor, recordSpans, type SpanOptions } from '../src/index.ts'
import { deferred, endOf, serve, traced, type Traced } from './support/traced.ts'

/** Each way to have the spans of requests written, which must come to the same. */
const ways: Record<string, (options?: SpanOptions) => Traced> = {
  'with the span processor': (options) => traced(new DeadlineSpanProcessor(options)),
  'by the hook alone': (options) => {
    onTestFinished(recordSpans(options))
    return traced()
  },
  'with a span processor in an SDK that knows no onEnding': (options) => {
    const processor = new DeadlineSpanProcessor(options)
    const old: SpanProcessor = {
      onStart: (...args) => processor.onStart(...args),
      onEnd: (span) => processor.onEnd(span),
      forceFlush: () => processor.forceFlush(),
      shutdown: () => processor.shutdown(),
    }
    return traced(old)
  },
}

function finishedRequests(): RequestFinished[] {
  const finished: RequestFinished[] = []
  onTestFinished(requestFinished.subscribe((event) => finished.push(event)))
  return finished
}

describe.each(Object.keys(ways))('the span of a request, %s', (way) => {
  const start = (options?: SpanOptions): Traced => ways[way]?.(options) ?? traced()

  test('has the budget, where it came from, and what was consumed, as the ledger has it', async () => {
    const telemetry = start()
    const finished = finishedRequests()
    const url = await serve((_, response) => void setTimeout(() => response.end('done'), 30))

    await (await fetch(url, { headers: { 'x-request-timeout-ms': '3000' } })).text()

    const { attributes, status } = await endOf(telemetry, 'GET')
    expect(attributes).toMatchObject({
      'deadline.budget.limit_ms': 3000,
      'deadline.budget.remaining_ms': 3000,
      'deadline.budget.overrun_ms': 0,
      'deadline.source': 'header',
      'deadline.clamped': false,
      'deadline.outcome': 'ok',
    })
    expect(Number.isInteger(attributes['deadline.budget.consumed_ms'])).toBe(true)
    const consumed = Number(attributes['deadline.budget.consumed_ms'])
    expect(Math.abs(consumed - (finished[0]?.elapsed ?? Infinity))).toBeLessThanOrEqual(5)
    expect(status.code).toBe(SpanStatusCode.UNSET)
  })

  test('says that more was asked for than is given', async () => {
    const telemetry = start()
    const url = await serve((_, response) => response.end(), { max: '2s' })

    await fetch(url, { headers: { 'x-request-timeout-ms': '60000' } })

    const { attributes } = await endOf(telemetry, 'GET')
    expect(attributes).toMatchObject({ 'deadline.budget.limit_ms': 2000, 'deadline.clamped': true })
  })

  test('counts limit and consumption from its own beginning where a route has tightened it', async () => {
    const telemetry = start()
    const tight = withDeadline((_, response) => void response.end(), { default: '2s' })
    const url = await serve((request, response) => void setTimeout(() => tight(request, response), 60), {
      default: '20s',
    })

    await fetch(url)

    const { attributes } = await endOf(telemetry, 'GET')
    expect(attributes).toMatchObject({ 'deadline.source': 'route', 'deadline.budget.overrun_ms': 0 })
    expect(attributes['deadline.budget.limit_ms']).toBeGreaterThan(2_058)
    expect(attributes['deadline.budget.limit_ms']).toBeLessThan(20_000)
    expect(attributes['deadline.budget.consumed_ms']).toBeGreaterThan(58)
  })

  test('is an error of our code where the deadline has passed', async () => {
    const telemetry = start()
    const url = await serve(() => new Promise(() => {}), { default: '50ms' })

    expect((await fetch(url)).status).toBe(504)

    const { attributes, status, events } = await endOf(telemetry, 'GET')
    expect(attributes).toMatchObject({
      'deadline.outcome': 'deadline_exceeded',
      'deadline.source': 'default',
      'error.type': 'DEADLINE_EXCEEDED',
    })
    expect(status.code).toBe(SpanStatusCode.ERROR)
    expect(events).toEqual([])
  })

  test('tells one that was refused for too little time from one whose time ran out', async () => {
    const telemetry = start()
    const url = await serve((_, response) => response.end(), { floor: '1s' })

    await fetch(url, { headers: { 'x-request-timeout-ms': '100' } })

    const { attributes } = await endOf(telemetry, 'GET')
    expect(attributes).toMatchObject({
      'deadline.outcome': 'short_circuited',
      'error.type': 'BUDGET_TOO_SMALL',
    })
  })

  test('is no error, and says so, where the user left', async () => {
    const telemetry = start()
    const entered = deferred()
    const url = await serve(() => {
      entered.resolve()
      return new Promise(() => {})
    })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await entered.promise
    socket.destroy()

    const { attributes, status } = await endOf(telemetry, 'GET')
    expect(attributes).toMatchObject({ 'deadline.outcome': 'client_closed' })
    expect(attributes['deadline.gone_by']).toMatch(/^client_/)
    expect(attributes['error.type']).toBeUndefined()
    expect(status.code).toBe(SpanStatusCode.UNSET)
  })

  test('is no error where the user left after all that was sent had been read', async () => {
    const telemetry = start()
    const entered = deferred()
    const url = await serve(async (request) => {
      for await (const _ of request);
      entered.resolve()
      return new Promise(() => {})
    })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\ntea')
    await entered.promise
    socket.destroy()

    const { attributes, status } = await endOf(telemetry, 'POST')
    expect(attributes).toMatchObject({ 'deadline.outcome': 'client_closed' })
    expect(status.code).toBe(SpanStatusCode.UNSET)
  })

  test('of a caller that hangs up right before the deadline says what the deadline does', async () => {
    const telemetry = start()
    const entered = deferred()
    const url = await serve(
      () => {
        entered.resolve()
        return new Promise(() => {})
      },
      { skewTolerance: '5s' },
    )
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nX-Request-Timeout-Ms: 40\r\n\r\n')
    await entered.promise
    socket.destroy()

    const { attributes } = await endOf(telemetry, 'GET')
    expect(attributes['deadline.outcome']).toBe('deadline_exceeded')
  })

  test('stays unset for streams that the deadline cuts off, where that is asked for', async () => {
    const telemetry = start({ unset: ({ begun }) => begun })
    const url = await serve(
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('data: one\n\n')
        return new Promise(() => {})
      },
      { default: '80ms' },
    )

    await (await fetch(url)).text().catch(() => {})

    const { attributes, status } = await endOf(telemetry, 'GET')
    expect(attributes['deadline.outcome']).toBe('deadline_exceeded')
    expect(status.code).toBe(SpanStatusCode.UNSET)
  })

  test('stays unset for the outcomes that are listed, though the instrumentation calls their 504 an error', async () => {
    const telemetry = start({ unset: ['deadline_exceeded'] })
    const url = await serve(() => new Promise(() => {}), { default: '30ms' })

    await fetch(url)

    expect((await endOf(telemetry, 'GET')).status.code).toBe(SpanStatusCode.UNSET)
  })
})

test('an option that does not exist, or cannot be read, is refused by name', () => {
  // @ts-expect-error no such option
  expect(() => recordSpans({ unsett: [] })).toThrow(/unsett/)
  // @ts-expect-error neither a list nor a function
  expect(() => new DeadlineSpanProcessor({ unset: 'streams' })).toThrow(/unset/)
})
