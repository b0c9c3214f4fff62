import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { Deadline, FirstTokenTimeoutError, runWithDeadline, startOperation } from '@timebudget/core'
import { describe, expect, onTestFinished, test } from 'vitest'
import { DeadlineSpanProcessor, recordSpans } from '../src/index.ts'
import { type FinishedCall, llmCallFinished } from '../src/llm-events.ts'
import { traced } from './support/traced.ts'

function finishedCall(given: Partial<FinishedCall> = {}): FinishedCall {
  return {
    operation: 'generate',
    provider: 'openai',
    model: 'gpt-large',
    url: 'https://api.example.com:8443/v1/chat/completions',
    feature: undefined,
    attempt: 1,
    outcome: 'ok',
    error: undefined,
    complete: true,
    status: 200,
    usage: { inputTokens: 12, outputTokens: 34, estimated: false },
    contentChunks: 3,
    timings: { firstChunk: 120, firstToken: 180.4, total: 400 },
    sdkRetry: false,
    ...given,
  }
}

/** An operation that makes one call, as `@timebudget/llm` tells of it. */
function call(given: Partial<FinishedCall> = {}): void {
  const deadline = Deadline.after('3s')
  onTestFinished(() => deadline.settle())
  const running = startOperation('generate', { deadline })
  running.end(given.outcome, given.error)
  runWithDeadline(running.deadline, () => llmCallFinished.publish(() => finishedCall(given)))
}

describe('the span of a call to a model', () => {
  test('is named and described as the conventions for generative AI have it, under its operation', () => {
    const { named } = traced(new DeadlineSpanProcessor())

    call()

    const span = named('chat gpt-large')
    expect(span.kind).toBe(SpanKind.CLIENT)
    expect(span.status.code).toBe(SpanStatusCode.UNSET)
    expect(span.parentSpanContext?.spanId).toBe(named('generate').spanContext().spanId)
    expect(span.attributes).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-large',
      'gen_ai.request.stream': true,
      'gen_ai.usage.input_tokens': 12,
      'gen_ai.usage.output_tokens': 34,
      'gen_ai.response.time_to_first_chunk': 0.12,
      'server.address': 'api.example.com',
      'server.port': 8443,
      'http.response.status_code': 200,
      'deadline.llm.first_token_ms': 180,
      'deadline.llm.complete': true,
      'deadline.budget.consumed_ms': 400,
      'deadline.outcome': 'ok',
    })
    const [seconds, nanoseconds] = span.duration
    expect(Math.abs(seconds * 1000 + nanoseconds / 1e6 - 400)).toBeLessThanOrEqual(1)
  })

  test('has what was used on it alone, not on the operations around it', () => {
    const { spans } = traced(new DeadlineSpanProcessor())

    call()

    const counted = spans().filter((span) => 'gen_ai.usage.input_tokens' in span.attributes)
    expect(counted.map((span) => span.name)).toEqual(['chat gpt-large'])
  })

  test('is none where an SDK has made one of its own around it', () => {
    const { spans } = traced(new DeadlineSpanProcessor())

    const attributes = { 'gen_ai.operation.name': 'chat', 'gen_ai.usage.input_tokens': 12 }
    const sdk = trace.getTracer('sdk').startSpan('chat claude', { attributes })
    context.with(trace.setSpan(context.active(), sdk), () => call())
    sdk.end()

    expect(spans().map((span) => span.name)).toEqual(['generate', 'chat claude'])
  })

  test('leaves to such a span what only we know: the first token, and how the call really ended', () => {
    const { named } = traced(new DeadlineSpanProcessor())

    const attributes = { 'gen_ai.provider.name': 'anthropic', 'gen_ai.operation.name': 'chat' }
    const sdk = trace.getTracer('sdk').startSpan('anthropic.messages.create', { attributes })
    context.with(trace.setSpan(context.active(), sdk), () =>
      call({ outcome: 'stream_stalled', complete: false }),
    )
    sdk.end()

    expect(named('anthropic.messages.create').attributes).toMatchObject({
      'deadline.llm.first_token_ms': 180,
      'deadline.llm.complete': false,
      'deadline.outcome': 'stream_stalled',
    })
  })

  test.each(['invoke_agent', 'execute_tool', 'invoke_workflow'])(
    'is there under the span of an SDK that is around calls, and no call itself: %s',
    (name) => {
      const { named } = traced(new DeadlineSpanProcessor())

      const attributes = { 'gen_ai.operation.name': name, 'gen_ai.provider.name': 'openai' }
      const agent = trace.getTracer('sdk').startSpan('an agent', { attributes })
      context.with(trace.setSpan(context.active(), agent), () => call())
      agent.end()

      expect(named('chat gpt-large').attributes['gen_ai.usage.input_tokens']).toBe(12)
    },
  )

  test('is made once, however many record spans', () => {
    const { spans } = traced(new DeadlineSpanProcessor())
    onTestFinished(recordSpans())

    call()

    expect(spans().map((span) => span.name)).toEqual(['generate', 'chat gpt-large'])
  })

  test('fails with the code of what ended it, and says what came first', () => {
    const { named } = traced(new DeadlineSpanProcessor())

    const error = new FirstTokenTimeoutError('no token within 8000 ms', {})
    call({
      outcome: 'first_token_timeout',
      error,
      complete: false,
      timings: { total: 8000 },
      status: undefined,
    })

    const { attributes, status } = named('chat gpt-large')
    expect(status).toMatchObject({ code: SpanStatusCode.ERROR, message: 'no token within 8000 ms' })
    expect(attributes).toMatchObject({
      'deadline.outcome': 'first_token_timeout',
      'error.type': 'FIRST_TOKEN_TIMEOUT',
      'deadline.llm.complete': false,
    })
    expect(attributes).not.toHaveProperty('gen_ai.response.time_to_first_chunk')
  })

  test('whose user left is no error, and says what of its usage is an estimate', () => {
    const { named } = traced(new DeadlineSpanProcessor())

    call({ outcome: 'client_closed', complete: false, usage: { inputTokens: 9, estimated: true } })

    const { attributes, status } = named('chat gpt-large')
    expect(status.code).toBe(SpanStatusCode.UNSET)
    expect(attributes).toMatchObject({
      'deadline.outcome': 'client_closed',
      'deadline.llm.usage.estimated': true,
    })
    expect(attributes).not.toHaveProperty('gen_ai.usage.output_tokens')
  })

  test.each([
    ['an SDK has tried again, which was refused', { sdkRetry: true }],
    ['was refused for lack of time', { outcome: 'short_circuited' }],
  ] as const)('is none where nothing was asked: %s', (_, given) => {
    const { spans } = traced(new DeadlineSpanProcessor())

    call(given)

    expect(spans().map((span) => span.name)).toEqual(['generate'])
  })

  test('stays unset for streams that were cut off, where that is asked for', () => {
    const { named } = traced(
      new DeadlineSpanProcessor({ unset: ({ kind, begun }) => kind === 'llm_call' && begun }),
    )

    call({ outcome: 'stream_stalled', complete: false })

    expect(named('chat gpt-large').status.code).toBe(SpanStatusCode.UNSET)
    expect(named('generate').status.code).toBe(SpanStatusCode.ERROR)
  })
})
