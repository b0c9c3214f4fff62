import { describe, expect, test } from 'vitest'
import { type FinishedCall, type FinishedQuestion, llmAnswered, llmCallFinished } from '../src/llm-events.ts'
import { metered } from './metered.ts'

const call: FinishedCall = {
  operation: 'generate',
  provider: 'openai',
  model: 'gpt-5',
  url: 'https://api.openai.com/v1/chat/completions',
  feature: 'search',
  attempt: 1,
  outcome: 'ok',
  error: undefined,
  complete: true,
  status: 200,
  usage: { inputTokens: 120, outputTokens: 40, estimated: false },
  contentChunks: 40,
  timings: { connect: 3, headers: 90, firstChunk: 95, firstToken: 400, total: 2_000 },
  sdkRetry: false,
}
const attributes = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.provider.name': 'openai',
  'gen_ai.request.model': 'gpt-5',
}

const question: FinishedQuestion = {
  operation: 'answer',
  feature: 'search',
  outcome: 'ok',
  answer: { complete: true, degraded: false, rung: 'big', reason: undefined },
  cost: { amount: 0.02, currency: 'USD', estimated: false },
}

describe('metrics of calls to models', () => {
  test('tell the first token from the first chunk, which need not hold any', async () => {
    await using recorded = metered()
    llmCallFinished.publish(() => call)
    expect(await recorded.histogram('deadline.llm.time_to_first_token', attributes)).toMatchObject({
      count: 1,
      sum: 0.4,
    })
    expect(await recorded.histogram('gen_ai.client.inference.time_to_first_chunk', attributes)).toMatchObject(
      { count: 1, sum: 0.095 },
    )
  })

  test('have the names, attributes, boundaries and units of the conventions: by default the newest', async () => {
    await using recorded = metered()
    llmCallFinished.publish(() => call)
    const duration = await recorded.histogram('gen_ai.client.inference.duration', attributes)
    expect(duration).toMatchObject({ count: 1, sum: 2 })
    expect(duration?.boundaries).toEqual([
      0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    ])
    const ofText = { ...attributes, 'gen_ai.token.modality': 'unknown' }
    expect(await recorded.value('gen_ai.client.inference.usage.input_tokens', ofText)).toBe(120)
    expect(await recorded.value('gen_ai.client.inference.usage.output_tokens', ofText)).toBe(40)
    expect(await recorded.series('gen_ai.client.operation.duration')).toBeUndefined()
  })

  test('have the names that most dashboards know, if those are asked for', async () => {
    await using recorded = metered({ genAi: 'v1.41' })
    llmCallFinished.publish(() => call)
    expect(await recorded.value('gen_ai.client.operation.duration', attributes)).toBe(1)
    expect(await recorded.value('gen_ai.client.operation.time_to_first_chunk', attributes)).toBe(1)
    const input = { ...attributes, 'gen_ai.token.type': 'input' }
    const tokens = await recorded.histogram('gen_ai.client.token.usage', input)
    expect(tokens).toMatchObject({ count: 1, sum: 120 })
    expect(tokens?.boundaries.slice(0, 4)).toEqual([1, 4, 16, 64])
    expect(await recorded.value('gen_ai.client.token.usage', { 'gen_ai.token.type': 'output' })).toBe(1)
    expect(await recorded.series('gen_ai.client.inference.duration')).toBeUndefined()
  })

  test('have none of those names where an SDK records its own', async () => {
    await using recorded = metered({ genAi: false })
    llmCallFinished.publish(() => call)
    expect(await recorded.series('gen_ai.client.inference.duration')).toBeUndefined()
    expect(await recorded.value('deadline.llm.calls', { 'deadline.outcome': 'ok' })).toBe(1)
  })

  test('give failures a type, and a user who left none', async () => {
    await using recorded = metered()
    llmCallFinished.publish(() => ({ ...call, outcome: 'first_token_timeout', complete: false }))
    llmCallFinished.publish(() => ({ ...call, outcome: 'error', error: new RangeError('odd') }))
    llmCallFinished.publish(() => ({ ...call, outcome: 'client_closed', complete: false }))
    const durations = (await recorded.series('gen_ai.client.inference.duration')) ?? []
    expect(durations.map(([each]) => each['error.type'])).toEqual([
      'FIRST_TOKEN_TIMEOUT',
      'RangeError',
      undefined,
    ])
    expect(await recorded.value('deadline.llm.calls', { 'deadline.outcome': 'first_token_timeout' })).toBe(1)
    expect(await recorded.value('deadline.llm.calls', { 'deadline.outcome': 'client_closed' })).toBe(1)
  })

  test('count no call that was never made', async () => {
    await using recorded = metered()
    llmCallFinished.publish(() => ({ ...call, outcome: 'upstream_error', sdkRetry: true }))
    llmCallFinished.publish(() => ({ ...call, outcome: 'short_circuited' }))
    for (const [, value] of (await recorded.series('deadline.llm.calls')) ?? []) expect(value).toBe(0)
    expect(await recorded.series('gen_ai.client.inference.duration')).toBeUndefined()
  })

  test('take no estimate for a count: the old names say nothing then, the new ones 0', async () => {
    const estimated = { ...call, usage: { inputTokens: 120, outputTokens: 7, estimated: true } }
    await using recorded = metered()
    await using old = metered({ genAi: 'v1.41' })
    llmCallFinished.publish(() => estimated)
    expect(await recorded.value('gen_ai.client.inference.usage.input_tokens', attributes)).toBe(0)
    expect(await old.series('gen_ai.client.token.usage')).toBeUndefined()
  })

  test.each([
    ['azure', 'https://x.openai.azure.com/openai/deployments/y/chat/completions', 'azure.ai.openai', 'chat'],
    [
      'google',
      'https://x.googleapis.com/v1/models/g:streamGenerateContent',
      'gcp.gen_ai',
      'generate_content',
    ],
    ['mistral', 'https://api.mistral.ai/v1/chat/completions', 'mistral_ai', 'chat'],
    ['openai', 'https://api.openai.com/v1/completions', 'openai', 'text_completion'],
    ['openai', 'https://api.openai.com/v1/embeddings', 'openai', 'embeddings'],
    ['constructor', 'https://constructor/v1/messages', 'constructor', 'chat'],
  ])("call %s at %s by the conventions' words: %s, %s", async (provider, url, conventional, operation) => {
    await using recorded = metered()
    llmCallFinished.publish(() => ({ ...call, provider, url }))
    const found = (await recorded.series('gen_ai.client.inference.duration'))?.[0]?.[0]
    expect(found).toMatchObject({
      'gen_ai.provider.name': conventional,
      'gen_ai.operation.name': operation,
    })
  })

  test('tell so many models apart', async () => {
    await using recorded = metered({ maxNames: 1 })
    llmCallFinished.publish(() => call)
    llmCallFinished.publish(() => ({ ...call, model: 'whatever the user typed' }))
    llmCallFinished.publish(() => ({ ...call, model: undefined }))
    const models = ((await recorded.series('gen_ai.client.inference.duration')) ?? []).map(
      ([each]) => each['gen_ai.request.model'],
    )
    expect(models).toEqual(['gpt-5', 'other', undefined])
  })
})

describe('metrics of questions to ladders', () => {
  test('say how they ended, which rung answered, whether completely, and what kept the first one from it', async () => {
    await using recorded = metered()
    llmAnswered.publish(() => question)
    const later = { complete: true, degraded: true, rung: 'small', reason: 'first_token_timeout' }
    llmAnswered.publish(() => ({ ...question, outcome: 'degraded', answer: later }))
    const partial = { complete: false, degraded: false, rung: 'big', reason: 'deadline_exceeded' }
    llmAnswered.publish(() => ({ ...question, outcome: 'degraded', answer: partial }))
    llmAnswered.publish(() => ({ ...question, outcome: 'client_closed', answer: undefined }))
    const ended = async (outcome: string): Promise<number | undefined> =>
      recorded.value('deadline.llm.questions', { 'deadline.outcome': outcome })
    expect([await ended('ok'), await ended('degraded'), await ended('client_closed')]).toEqual([1, 2, 1])
    const answers = ((await recorded.series('deadline.llm.answers')) ?? []).map(([each]) => each)
    expect(answers).toEqual([
      {
        'deadline.operation': 'answer',
        'deadline.rung': 'big',
        'deadline.answer.complete': true,
        'deadline.answer.reason': 'none',
      },
      {
        'deadline.operation': 'answer',
        'deadline.rung': 'small',
        'deadline.answer.complete': true,
        'deadline.answer.reason': 'first_token_timeout',
      },
      {
        'deadline.operation': 'answer',
        'deadline.rung': 'big',
        'deadline.answer.complete': false,
        'deadline.answer.reason': 'deadline_exceeded',
      },
    ])
  })

  test('add up what they cost, those that came to nothing included, by feature and currency', async () => {
    await using recorded = metered()
    llmAnswered.publish(() => question)
    llmAnswered.publish(() => ({ ...question, outcome: 'client_closed', answer: undefined }))
    llmAnswered.publish(() => ({
      ...question,
      feature: undefined,
      cost: { amount: 1, currency: 'EUR', estimated: true },
    }))
    llmAnswered.publish(() => ({ ...question, cost: undefined }))
    expect(await recorded.series('deadline.llm.cost')).toEqual([
      [
        {
          'deadline.cost.currency': 'USD',
          'deadline.feature': 'search',
          'deadline.cost.estimated': false,
        },
        0.04,
      ],
      [{ 'deadline.cost.currency': 'EUR', 'deadline.feature': 'none', 'deadline.cost.estimated': true }, 1],
    ])
  })

  test('take no reason but an outcome', async () => {
    await using recorded = metered()
    llmAnswered.publish(() => ({
      ...question,
      answer: { complete: false, degraded: false, rung: 'big', reason: 'a secret' },
    }))
    const answers = (await recorded.series('deadline.llm.answers')) ?? []
    expect(answers[0]?.[0]).toMatchObject({ 'deadline.answer.reason': 'none' })
  })
})
