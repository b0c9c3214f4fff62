import { type Span, SpanStatusCode, trace } from '@opentelemetry/api'
import { AlwaysOffSampler, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { Deadline, detach, operation, runWithDeadline } from '@timebudget/core'
import { expect, onTestFinished, test, vi } from 'vitest'
import { DeadlineSpanProcessor, recordSpans } from '../src/index.ts'
import { llmCallFinished } from '../src/llm-events.ts'
import { traced } from './support/traced.ts'

function request(budget: number): Deadline {
  const deadline = Deadline.after(budget)
  onTestFinished(() => deadline.settle())
  return deadline
}

const failing = async (): Promise<never> => {
  throw new Error('nothing found')
}

test('a rule for the status that throws leaves the span an error, and ends it', async () => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => void vi.restoreAllMocks())
  const unset = (): never => {
    throw new Error('the rule is out of order')
  }
  const { named } = traced(new DeadlineSpanProcessor({ unset }))

  await operation('retrieve', { timeout: '1s' }, failing).catch(() => {})

  expect(named('retrieve').status.code).toBe(SpanStatusCode.ERROR)
  expect(named('retrieve').ended).toBe(true)
})

test('an attribute that cannot be written does not keep the span of an operation from ending', async () => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => void vi.restoreAllMocks())
  const { named } = traced(new DeadlineSpanProcessor())

  await operation('retrieve', { timeout: '1s' }, () => {
    const span = trace.getActiveSpan()
    if (span !== undefined)
      span.setAttribute = () => {
        throw new Error('no room')
      }
  })

  expect(named('retrieve').ended).toBe(true)
})

test('a name that was made of input is cut, so that it costs no batch of spans its place', async () => {
  const { spans } = traced(new DeadlineSpanProcessor())
  const input = '🙂'.repeat(500_000)

  await operation(input, { timeout: '1s' }, () =>
    operation('inner', {}, () =>
      llmCallFinished.publish(() => ({
        operation: 'generate',
        provider: 'openai',
        model: input,
        url: 'https://api.example.com/v1/chat/completions',
        feature: undefined,
        attempt: 1,
        outcome: 'ok',
        error: undefined,
        complete: true,
        status: 200,
        usage: { estimated: false },
        contentChunks: 1,
        timings: { total: 1 },
        sdkRetry: false,
      })),
    ),
  )

  expect(spans()).toHaveLength(3)
  expect(JSON.stringify(spans().map(({ name, attributes }) => ({ name, attributes }))).length).toBeLessThan(
    10_000,
  )
  for (const { name } of spans()) expect(name).not.toMatch(/[\ud800-\udbff]…/)
})

test('a request of ten thousand operations has a span of each, and keeps no more of them than its ledger', async () => {
  const lateOnes: Array<WeakRef<Span>> = []
  let [begun, ended] = [0, 0]
  traced()
  const provider = new NodeTracerProvider({
    spanProcessors: [
      {
        onStart(span) {
          begun += 1
          if (begun > 9_900) lateOnes.push(new WeakRef<Span>(span))
        },
        onEnd: () => void (ended += 1),
        forceFlush: async () => {},
        shutdown: async () => {},
      },
    ],
  })
  onTestFinished(recordSpans({ tracerProvider: provider }))

  const deadline = request(60_000)
  await runWithDeadline(deadline, async () => {
    for (let nth = 0; nth < 5_000; nth += 1)
      await operation('outer', {}, () => operation('inner', {}, async () => {}))
  })

  expect(ended).toBe(10_000)
  const isKept = (): boolean => lateOnes.filter((span) => span.deref() !== undefined).length > 10
  for (let turn = 0; turn < 20 && isKept(); turn += 1) {
    await new Promise(setImmediate)
    globalThis.gc?.()
  }
  expect(isKept()).toBe(false)
  expect(deadline.ledger.entries).toHaveLength(1_024)
})

test('a span that outlives its request ends with what it took until then, detached work with none of it', async () => {
  const { named } = traced(new DeadlineSpanProcessor())
  const deadline = Deadline.after('5s')
  const tracer = trace.getTracer('an instrumentation')
  const late = runWithDeadline(deadline, () => tracer.startSpan('late'))
  const detached = runWithDeadline(deadline, () => detach(() => tracer.startSpan('detached')))
  deadline.settle()

  await new Promise((resolve) => setTimeout(resolve, 20))
  late.end()
  detached.end()

  expect(named('late').attributes['deadline.budget.consumed_ms']).toBeGreaterThanOrEqual(0)
  expect(named('late').status.code).toBe(SpanStatusCode.UNSET)
  expect(named('detached').attributes).toEqual({})
})

test('of a trace that is sampled out nothing is written, and no span that nobody records becomes a parent', async () => {
  traced()
  const provider = new NodeTracerProvider({ sampler: new AlwaysOffSampler() })
  onTestFinished(recordSpans({ tracerProvider: provider }))
  const outer = trace.getTracer('the application').startSpan('outer')

  const active = await operation('retrieve', { timeout: '1s' }, () => trace.getActiveSpan())
  outer.end()

  expect(active).toBeUndefined()
})
