import { context, SpanKind, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api'
import {
  Deadline,
  deadlineSent,
  type LedgerEntry,
  operation,
  OverloadedError,
  runWithDeadline,
  startOperation,
} from '@timebudget/core'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { DeadlineSpanProcessor, recordSpans } from '../src/index.ts'
import { serve, traced } from './support/traced.ts'

// asked for anew: it keeps to the SDK that is global when it is first used
const tracer = (): Tracer => trace.getTracer('an instrumentation')

/** A request's deadline, and the ledger's entry of its only, or last, operation. */
function request(budget = 3000): {
  readonly deadline: Deadline
  readonly entry: () => LedgerEntry | undefined
} {
  const deadline = Deadline.after(budget)
  onTestFinished(() => deadline.settle())
  return { deadline, entry: () => deadline.ledger.entries.at(-1) }
}

function within(value: unknown, figure: number | undefined): void {
  expect(Number.isInteger(value)).toBe(true)
  expect(Math.abs(Number(value) - (figure ?? Infinity))).toBeLessThanOrEqual(5)
}

describe('the span of an operation', () => {
  test('has what the ledger has', async () => {
    const { named } = traced(new DeadlineSpanProcessor())
    const { deadline, entry } = request()

    const limits = { timeout: '1s', floor: '50ms', reserve: '200ms', deadline }
    await operation('retrieve', limits, () => new Promise((resolve) => setTimeout(resolve, 30)))

    const { attributes, kind, status } = named('retrieve')
    expect(kind).toBe(SpanKind.INTERNAL)
    expect(status.code).toBe(SpanStatusCode.UNSET)
    expect(attributes).toMatchObject({
      'deadline.operation': 'retrieve',
      'deadline.budget.granted_ms': 1000,
      'deadline.budget.floor_ms': 50,
      'deadline.budget.reserve_ms': 200,
      'deadline.outcome': 'ok',
    })
    within(attributes['deadline.budget.remaining_ms'], entry()?.remaining)
    within(attributes['deadline.budget.consumed_ms'], entry()?.spent)
    expect(attributes['deadline.budget.consumed_ms']).toBeGreaterThanOrEqual(25)
  })

  test('is the parent of all spans that are made inside it, operations within it included', async () => {
    const { named } = traced(new DeadlineSpanProcessor())
    const { deadline } = request()

    await operation('generate', { deadline }, async () => {
      tracer().startSpan('SELECT').end()
      await operation('rerank', {}, async () => {
        await new Promise(setImmediate)
        tracer().startSpan('GET').end()
      })
    })

    const parentOf = (name: string): string | undefined => named(name).parentSpanContext?.spanId
    expect(parentOf('SELECT')).toBe(named('generate').spanContext().spanId)
    expect(parentOf('rerank')).toBe(named('generate').spanContext().spanId)
    expect(parentOf('GET')).toBe(named('rerank').spanContext().spanId)
    expect(named('rerank').attributes['deadline.operation']).toBe('generate.rerank')
  })

  test('stands under the operation it is part of, though no work of that one is run as a function', () => {
    const { named } = traced(new DeadlineSpanProcessor())
    const { deadline } = request()

    const ladder = startOperation('ladder', { deadline })
    startOperation('big', { deadline: ladder.deadline }).end()
    ladder.end()

    expect(named('big').parentSpanContext?.spanId).toBe(named('ladder').spanContext().spanId)
  })

  test('stands under the span that a user has made within the operation around it', async () => {
    const { named } = traced(new DeadlineSpanProcessor())
    const { deadline } = request()

    await operation('generate', { deadline }, () =>
      tracer().startActiveSpan('prompt', async (span) => {
        await operation('rerank', {}, async () => {})
        span.end()
      }),
    )

    expect(named('rerank').parentSpanContext?.spanId).toBe(named('prompt').spanContext().spanId)
  })

  test('stands under the one whose work it is, where several of a name run at once', async () => {
    const { spans } = traced(new DeadlineSpanProcessor())
    const { deadline } = request()
    const asSdk = { attributes: { 'gen_ai.operation.name': 'chat' } }

    const both = ['own', 'sdk'].map((name) =>
      runWithDeadline(deadline, () =>
        tracer().startActiveSpan(name, name === 'sdk' ? asSdk : {}, (around) =>
          operation('ask', {}, async () => {
            await Promise.resolve()
            await operation('call', {}, async () => {})
          }).finally(() => around.end()),
        ),
      ),
    )
    await Promise.all(both)

    const idOf = (name: string): unknown[] =>
      spans()
        .filter((span) => span.name === name)
        .map((span) => span.spanContext().spanId)
    const parents = spans()
      .filter(({ name }) => name === 'call')
      .map(({ parentSpanContext }) => parentSpanContext?.spanId)
    expect(new Set(parents)).toEqual(new Set(idOf('ask')))
    expect(parents).toHaveLength(2)
  })

  test('that was refused is there too, with the reason', async () => {
    const { named } = traced(new DeadlineSpanProcessor())
    const { deadline } = request(100)

    await operation('generate', { deadline, floor: '1s' }, async () => {}).catch(() => {})

    const { attributes, status } = named('generate')
    expect(attributes).toMatchObject({
      'deadline.outcome': 'short_circuited',
      'deadline.budget.floor_ms': 1000,
      'error.type': 'BUDGET_TOO_SMALL',
    })
    expect(status.code).toBe(SpanStatusCode.ERROR)
  })

  const failures: Array<[string, unknown, string]> = [
    ['error', new RangeError('a bug'), 'RangeError'],
    ['error', Object.assign(new Error('no file'), { code: 'ENOENT' }), 'ENOENT'],
    ['error', Object.assign(new Error('aborted'), { code: 23 }), 'Error'],
    ['error', 'a bare string', '_OTHER'],
    ['shed', new OverloadedError('too much', {}), 'OVERLOADED'],
  ]
  test.each(failures)(
    'is an error (%s) with a type that is always a string',
    async (outcome, error, type) => {
      const { named } = traced(new DeadlineSpanProcessor())
      const { deadline } = request()

      await operation('retrieve', { deadline }, () => Promise.reject(error)).catch(() => {})

      const { attributes, status, events } = named('retrieve')
      expect(attributes).toMatchObject({ 'deadline.outcome': outcome, 'error.type': type })
      expect(status.code).toBe(SpanStatusCode.ERROR)
      expect(events).toEqual([])
    },
  )

  test('tells its own timeout from the deadline', async () => {
    const { named } = traced(new DeadlineSpanProcessor())
    const { deadline } = request(60)

    await Promise.allSettled([
      operation('own', { deadline, timeout: 20 }, () => new Promise(() => {})),
      operation('all', { deadline }, () => new Promise(() => {})),
    ])

    expect(named('own').attributes['error.type']).toBe('OPERATION_TIMEOUT')
    expect(named('all').attributes['error.type']).toBe('DEADLINE_EXCEEDED')
  })

  test('says whether its call carried the deadline on', async () => {
    const { named } = traced(new DeadlineSpanProcessor())
    const { deadline } = request()

    for (const sent of [true, false]) {
      const running = startOperation(`sent ${sent}`, { deadline })
      deadlineSent.publish(() => ({ deadline: running.deadline, host: 'peer', sent }))
      running.end()
    }

    expect(named('sent true').attributes['deadline.propagated']).toBe(true)
    expect(named('sent false').attributes['deadline.propagated']).toBe(false)
  })

  test('has no attribute for what nothing limits', async () => {
    const { named } = traced(new DeadlineSpanProcessor())

    await operation('free', {}, async () => {})

    expect(Object.keys(named('free').attributes)).not.toContain('deadline.budget.granted_ms')
    expect(Object.keys(named('free').attributes)).not.toContain('deadline.budget.remaining_ms')
  })

  test('is made once, however many listen', async () => {
    const begun: string[] = []
    const { spans } = traced(new DeadlineSpanProcessor(), {
      onStart: ({ name }) => void begun.push(name),
      onEnd() {},
      forceFlush: async () => {},
      shutdown: async () => {},
    })
    onTestFinished(recordSpans())

    await operation('once', { timeout: '1s' }, async () => {})
    await operation('refused', { timeout: '1s', deadline: Deadline.after(0) }, async () => {}).catch(() => {})

    expect(begun).toEqual(['once', 'refused'])
    expect(spans().map((span) => span.name)).toEqual(begun)
  })

  test('is not made where that is not wanted', async () => {
    const { spans } = traced(new DeadlineSpanProcessor({ operations: false }))

    await operation('none', { timeout: '1s' }, async () => {})

    expect(spans()).toEqual([])
  })
})

describe('any span that is made under a deadline', () => {
  test('has what was left at its start, and what it consumed', async () => {
    const { named } = traced(new DeadlineSpanProcessor())
    const { deadline } = request()

    await runWithDeadline(deadline, () =>
      tracer().startActiveSpan('GET redis', async (span) => {
        await new Promise((resolve) => setTimeout(resolve, 40))
        span.end()
      }),
    )

    const { attributes } = named('GET redis')
    expect(attributes['deadline.budget.remaining_ms']).toBeLessThanOrEqual(3000)
    expect(attributes['deadline.budget.remaining_ms']).toBeGreaterThan(2500)
    expect(attributes['deadline.budget.consumed_ms']).toBeGreaterThanOrEqual(38)
    expect(attributes['deadline.budget.consumed_ms']).toBeLessThan(1500)
  })

  test('of an instrumentation that takes our abort for an error is none where the user left', async () => {
    const { named } = traced(new DeadlineSpanProcessor())
    const { deadline } = request()

    runWithDeadline(deadline, () => {
      const span = tracer().startSpan('GET')
      deadline.cancel()
      span.setAttribute('error.type', deadline.reason?.name ?? '')
      span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    })

    expect(named('GET').status.code).toBe(SpanStatusCode.UNSET)
    expect(named('GET').attributes['deadline.outcome']).toBe('cancelled')
  })

  test('under no deadline is left alone', () => {
    const { named } = traced(new DeadlineSpanProcessor())

    tracer().startSpan('background').end()

    expect(named('background').attributes).toEqual({})
  })
})

describe('no hook of ours can throw', () => {
  test('a span whose every method throws hurts neither the operation nor the request', async () => {
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    onTestFinished(() => void vi.restoreAllMocks())
    traced(new DeadlineSpanProcessor())
    const broken = {
      getTracer: () => ({
        startSpan: () => new Proxy({}, { get: () => () => raise() }),
        startActiveSpan: raise,
      }),
    }
    // @ts-expect-error a tracer provider out of order
    onTestFinished(recordSpans({ tracerProvider: broken }))
    const url = await serve(async (_, response) => {
      response.end(await operation('retrieve', {}, async () => 'found'))
    })

    expect(await (await fetch(url)).text()).toBe('found')
  })

  test('a processor that is given what is no span returns', () => {
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    onTestFinished(() => void vi.restoreAllMocks())
    const processor = new DeadlineSpanProcessor()
    onTestFinished(() => processor.shutdown())
    const { deadline } = request()

    runWithDeadline(deadline, () => {
      // @ts-expect-error no span
      expect(processor.onStart({ setAttribute: raise }, context.active())).toBeUndefined()
      // @ts-expect-error no span
      expect(processor.onStart(undefined, undefined)).toBeUndefined()
      // @ts-expect-error no span
      expect(processor.onEnding(undefined)).toBeUndefined()
    })
  })

  test('an attribute that cannot be written at the end does not keep a span from ending', () => {
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    onTestFinished(() => void vi.restoreAllMocks())
    const { named } = traced(new DeadlineSpanProcessor())
    const { deadline } = request()

    runWithDeadline(deadline, () => {
      const span = tracer().startSpan('GET')
      span.setAttribute = raise
      span.end()
    })

    expect(named('GET').name).toBe('GET')
  })
})

function raise(): never {
  throw new Error('telemetry is out of order')
}
