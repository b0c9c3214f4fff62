import Anthropic from '@anthropic-ai/sdk'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { NodeSDK } from '@opentelemetry/sdk-node'
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { trace } from '@opentelemetry/api'
import { Deadline, operation, runWithDeadline } from '@timebudget/core'
import {
  CostMeter,
  governedFetch,
  ladder,
  model,
  openaiChat,
  type ProfileChoice,
  type Rung,
} from '@timebudget/llm'
import { localProvider, steadyTokens } from '@timebudget/llm/testing'
import { DeadlineSpanProcessor } from '@timebudget/otel'
import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'

const exporter = new InMemorySpanExporter()
const sdk = new NodeSDK({
  spanProcessors: [new DeadlineSpanProcessor(), new SimpleSpanProcessor(exporter)],
  instrumentations: [],
  metricReaders: [],
  logRecordProcessors: [],
  autoDetectResources: false,
})
/** Answers the big model never, and the small one at once. */
const provider = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) body += chunk
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (JSON.parse(body).model === 'big') return response.flushHeaders()
  const delta = { choices: [{ index: 0, delta: { content: 'tea' }, finish_reason: null }] }
  const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
  const usage = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } }
  for (const event of [delta, end, usage]) response.write(`data: ${JSON.stringify(event)}\n\n`)
  return response.end('data: [DONE]\n\n')
})
let baseURL = ''

beforeAll(async () => {
  sdk.start()
  provider.listen(0, '127.0.0.1')
  await once(provider, 'listening')
  baseURL = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`
})
afterEach(() => exporter.reset())
afterAll(async () => {
  provider.closeAllConnections()
  provider.close()
  await sdk.shutdown()
})

/** Gives up soon, where nothing comes. */
const impatient = { connect: '3s', firstToken: '300ms', idle: '3s', total: '10s' }

function client(profile: ProfileChoice): OpenAI {
  return new OpenAI({ apiKey: 'none', baseURL, maxRetries: 0, fetch: governedFetch({ profile }) })
}

interface Question {
  readonly question: string
}

const rung = (name: string, profile: ProfileChoice): Rung<Question> =>
  model(name, ({ question }: Question, { signal }) =>
    openaiChat(client(profile), { model: name, messages: [{ role: 'user', content: question }] }, { signal }),
  )

function spanOf(name: string): ReadableSpan {
  const spans = exporter.getFinishedSpans()
  const found = spans.find((span) => span.name === name)
  if (found === undefined)
    throw new Error(`no span is called ${name}: ${spans.map((span) => span.name).join(', ')}`)
  return found
}

const parentOf = (span: ReadableSpan): ReadableSpan | undefined =>
  exporter.getFinishedSpans().find((other) => other.spanContext().spanId === span.parentSpanContext?.spanId)

test('a call of an SDK becomes a span with its usage and its first token, under the operation it is', async () => {
  const deadline = Deadline.after('20s')

  await runWithDeadline(deadline, async () => {
    const stream = await client('chat').chat.completions.create({
      model: 'small',
      messages: [{ role: 'user', content: 'what is in the pot' }],
      stream: true,
      stream_options: { include_usage: true },
    })
    for await (const _ of stream);
  })

  const call = spanOf('chat small')
  expect(call.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'small',
    'gen_ai.usage.input_tokens': 7,
    'gen_ai.usage.output_tokens': 3,
    'deadline.outcome': 'ok',
    'deadline.llm.complete': true,
  })
  expect(Number(call.attributes['gen_ai.response.time_to_first_chunk'])).toBeGreaterThan(0)
  expect(Number(call.attributes['deadline.llm.first_token_ms'])).toBeGreaterThanOrEqual(0)
  expect(parentOf(call)?.attributes['deadline.operation']).toBe('generate')
  deadline.settle()
})

test('a ladder that falls from one model to the next shows each rung, and counts what was used once', async () => {
  const deadline = Deadline.after('20s')
  const answers = ladder([rung('big', impatient), rung('small', 'chat')])

  const answer = await runWithDeadline(deadline, () => answers.run({ question: 'what is in the pot' }))

  expect(answer).toMatchObject({ text: 'tea', rung: 'small', degraded: true })
  expect(spanOf('chat big').attributes).toMatchObject({
    'deadline.outcome': 'first_token_timeout',
    'error.type': 'FIRST_TOKEN_TIMEOUT',
  })
  for (const name of ['big', 'small']) {
    const path: unknown[] = []
    for (let span = parentOf(spanOf(`chat ${name}`)); span !== undefined; span = parentOf(span))
      path.push(span.attributes['deadline.operation'])
    // from the call up to the question, each under the one it is part of
    expect(path.length).toBeGreaterThanOrEqual(3)
    expect(path).toContain(`${String(path.at(-1))}.${name}`)
  }
  const counted = exporter
    .getFinishedSpans()
    .filter((span) => 'gen_ai.usage.output_tokens' in span.attributes)
  expect(counted.filter((span) => span.attributes['gen_ai.usage.output_tokens'] === 3)).toHaveLength(1)
  deadline.settle()
})

test('the span of a ladder says which rung has answered, why not the first, and what the question has cost', async () => {
  const cost = new CostMeter({ prices: { small: { input: 1, output: 2 } } })
  const answers = ladder([rung('big', impatient), rung('small', 'chat')], { operation: 'answer', cost })
  const deadline = Deadline.after('20s')

  const answer = await runWithDeadline(deadline, () => answers.run({ question: 'what is in the pot' }))

  expect(spanOf('answer').attributes).toMatchObject({
    'deadline.rung': 'small',
    'deadline.answer.complete': true,
    'deadline.answer.reason': 'first_token_timeout',
    'deadline.cost.amount': answer.cost?.amount,
    'deadline.cost.currency': 'USD',
    'deadline.outcome': 'degraded',
  })
  expect(answer.cost?.amount).toBeGreaterThan(0)
  deadline.settle()
})

test('what the own code of a rung does, also between its pieces, stands in the span of the rung', async () => {
  const tracer = trace.getTracer('the application')
  const own = model(
    'own',
    async function* ({ question }: Question) {
      tracer.startSpan('looks it up').end()
      yield { type: 'text', text: question } as const
      tracer.startSpan('looks on').end()
      await operation('rerank', {}, async () => {})
      yield { type: 'text', text: '!' } as const
    },
    { attempts: 1 },
  )
  const deadline = Deadline.after('20s')

  const answer = await runWithDeadline(deadline, () =>
    ladder([own], { operation: 'answer' }).run({ question: 'tea' }),
  )

  expect(answer.text).toBe('tea!')
  for (const name of ['looks it up', 'looks on', 'rerank']) {
    const above: unknown[] = []
    for (let span = parentOf(spanOf(name)); span !== undefined; span = parentOf(span))
      above.push(span.attributes['deadline.operation'])
    expect(above).toContain('answer.own')
  }
  expect(spanOf('rerank').attributes['deadline.operation']).toBe('answer.own.rerank')
  deadline.settle()
})

test("of a call that Anthropic's SDK makes there is its span alone, with its usage and our first token", async () => {
  await using anthropic = await localProvider({ script: steadyTokens(5) })
  const fetch = governedFetch({ profile: 'chat' })
  const claude = new Anthropic({ apiKey: 'none', baseURL: anthropic.url, maxRetries: 0, fetch })
  const deadline = Deadline.after('20s')

  await runWithDeadline(deadline, async () => {
    const messages = [{ role: 'user' as const, content: 'what is in the pot' }]
    const stream = await claude.messages.create({ model: 'claude', max_tokens: 50, messages, stream: true })
    for await (const _ of stream);
  })

  await vi.waitFor(() => spanOf('anthropic.messages.create'))
  const spans = exporter.getFinishedSpans()
  expect(
    spans.filter(({ attributes }) => 'gen_ai.usage.output_tokens' in attributes).map(({ name }) => name),
  ).toEqual(['anthropic.messages.create'])
  expect(spans.filter(({ name }) => name.startsWith('chat'))).toEqual([])
  const { attributes } = spanOf('anthropic.messages.create')
  expect(attributes['deadline.llm.first_token_ms']).toBeGreaterThanOrEqual(0)
  expect(attributes['deadline.llm.complete']).toBe(true)
  expect(parentOf(spanOf('generate'))?.name).toBe('anthropic.messages.create')
  deadline.settle()
})
