import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { ChatOpenAI } from '@langchain/openai'
import { Deadline } from '@timebudget/core'
import {
  aiSdk,
  type Answer,
  anthropicMessages,
  type Ask,
  type AskModel,
  CostMeter,
  governedFetch,
  ladder,
  langchainChat,
  model,
  type ModelOptions,
  openaiChat,
  openaiResponses,
  type Rung,
  rule,
} from '@timebudget/llm'
import {
  cutAfter,
  errorAnswer,
  headersThenSilence,
  localProvider,
  type LocalProvider,
  neverAnswers,
  type ProviderRequest,
  type Script,
  steadyTokens,
} from '@timebudget/llm/testing'
import { breaker } from '@timebudget/resilience'
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'

const limits = { connect: '2s', firstToken: '400ms', idle: '5s', total: '20s' }
const fetch = governedFetch({ profile: limits })
const messages = [{ role: 'user' as const, content: 'Why?' }]

/** No waiting, and no budget that tests would share. */
const atOnce: ModelOptions = { backoff: { initial: 0 }, budget: null }

const providers: LocalProvider[] = []
afterEach(async () => {
  for (const provider of providers.splice(0)) await provider.close()
})

/** A provider that plays each model's scripts, one for each of its requests and the last for all others. */
async function providerOf(scripts: Readonly<Record<string, readonly Script[]>>): Promise<LocalProvider> {
  const asked: Record<string, number> = {}
  const provider = await localProvider({
    script({ body }) {
      const name = String(body['model'])
      const nth = (asked[name] = (asked[name] ?? 0) + 1)
      return scripts[name]?.[nth - 1] ?? scripts[name]?.at(-1) ?? {}
    },
  })
  providers.push(provider)
  return provider
}

/** openai 6 as it comes, its own retries included. */
function chat(provider: LocalProvider, name: string): AskModel<string> {
  const client = new OpenAI({ fetch, baseURL: provider.openaiUrl, apiKey: 'test' })
  return (_, scope) => openaiChat(client, { model: name, messages }, scope)
}

function rungOf(provider: LocalProvider, name: string, options: ModelOptions = {}): Rung<string> {
  return model(name, chat(provider, name), { ...atOnce, ...options })
}

const sorry = rule<string>(() => 'sorry')
const asksOf = (provider: LocalProvider, name: string): readonly ProviderRequest[] =>
  provider.requests.filter(({ body }) => body['model'] === name)
const triesOf = ({ attempts }: Answer): readonly unknown[] =>
  attempts.map(({ rung, attempt, outcome }) => [rung, attempt, outcome])
const soon = (): Ask => ({ deadline: Deadline.after('20s') })

describe('a ladder over real SDKs', () => {
  test('goes on when the provider accepts and never answers, inside the budget', async () => {
    const provider = await providerOf({ big: [neverAnswers()], small: [steadyTokens(2)] })
    const deadline = Deadline.after('10s')
    const answer = await ladder([
      rungOf(provider, 'big', { attempts: 3 }),
      rungOf(provider, 'small'),
      sorry,
    ]).run('Why?', { deadline })
    expect(answer).toMatchObject({
      text: 'word word',
      rung: 'small',
      degraded: true,
      reason: 'first_token_timeout',
    })
    expect(asksOf(provider, 'big')).toHaveLength(1)
    expect((await asksOf(provider, 'big')[0]?.closed)?.byClient).toBe(true)
    expect(deadline.expired).toBe(false)
    deadline.settle()
  })

  test('does not wait an hour because a provider says so', async () => {
    const provider = await providerOf({ big: [errorAnswer(429, {}, { 'retry-after': '3600' })] })
    const startedAt = performance.now()
    const answer = await ladder([rungOf(provider, 'big', { attempts: 3 }), rungOf(provider, 'small')]).run(
      'Why?',
      soon(),
    )
    expect(answer).toMatchObject({ rung: 'small', reason: 'upstream_error' })
    expect(performance.now() - startedAt).toBeLessThan(5_000)
    expect(asksOf(provider, 'big')).toHaveLength(1)
  })

  test.each([
    {
      name: 'a key that is refused',
      status: 401,
      failure: { message: 'no such key' },
      says: /401.*no such key/,
    },
    {
      name: 'a quota that is used up',
      status: 429,
      failure: { message: 'pay first', code: 'insufficient_quota' },
      says: /429 \(insufficient_quota\): .*pay first/,
    },
    {
      name: 'an overload that its provider says is no use to ask about again',
      status: 503,
      failure: { message: 'down for the day' },
      headers: { 'x-should-retry': 'false' },
      says: /503.*down for the day/,
    },
  ])('does not ask again after $name, and says so', async ({ status, failure, headers, says }) => {
    const provider = await providerOf({ big: [errorAnswer(status, failure, headers)] })
    const answering = ladder([rungOf(provider, 'big', { attempts: 3 })]).run('Why?', soon())
    await expect(answering).rejects.toMatchObject({
      code: 'UPSTREAM_ERROR',
      message: expect.stringMatching(says),
    })
    expect(provider.requests).toHaveLength(1)
  })

  test('asks again after two failures, under the same key, inside the budget', async () => {
    const provider = await providerOf({ big: [errorAnswer(500), errorAnswer(500), steadyTokens(2)] })
    const answer = await ladder([rungOf(provider, 'big', { attempts: 3 }), sorry]).run('Why?', soon())
    expect(answer).toMatchObject({ text: 'word word', degraded: false, complete: true })
    expect(triesOf(answer)).toEqual([
      ['big', 1, 'upstream_error'],
      ['big', 2, 'upstream_error'],
      ['big', 3, 'ok'],
    ])
    const keys = provider.requests.map(({ headers }) => headers['idempotency-key'])
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).toBeTruthy()
  })

  test('asks an overloaded Anthropic again', async () => {
    const provider = await providerOf({ big: [errorAnswer(529), steadyTokens(2)] })
    const client = new Anthropic({ fetch, baseURL: provider.url, apiKey: 'test' })
    const ask: AskModel<string> = (_, scope) =>
      anthropicMessages(client, { model: 'big', max_tokens: 9, messages }, scope)
    expect(await ladder([model('big', ask, atOnce), sorry]).run('Why?', soon())).toMatchObject({
      text: 'word word',
      degraded: false,
    })
  })

  test('never says a text twice: what has been said is the answer', async () => {
    const provider = await providerOf({ big: [cutAfter(3), steadyTokens(3)] })
    const stream = ladder([
      rungOf(provider, 'big', { attempts: 3 }),
      rungOf(provider, 'small'),
      sorry,
    ]).stream('Why?', soon())
    let text = ''
    for await (const token of stream) text += token.text
    expect(text).toBe('word word word')
    expect(await stream.answer).toMatchObject({ text, complete: false, reason: 'upstream_error' })
    expect(provider.requests).toHaveLength(1)
  })

  test('asks again where a stream broke off before it said anything, and begins the answer once', async () => {
    const broken = { steps: [{ empty: 2 }], ending: 'cut' } satisfies Script
    const provider = await providerOf({ big: [broken, steadyTokens(3)] })
    const stream = ladder([rungOf(provider, 'big'), sorry]).stream('Why?', soon())
    let text = ''
    for await (const token of stream) text += token.text
    expect(text).toBe('word word word')
    expect(provider.requests).toHaveLength(2)
  })

  test('a rung that stalls before any text leaves the next one a signal of its own', async () => {
    const provider = await providerOf({ big: [headersThenSilence()], small: [steadyTokens(2)] })
    const signals: AbortSignal[] = []
    const noting = (name: string): AskModel<string> => {
      const ask = chat(provider, name)
      return (input, scope) => {
        signals.push(scope.signal)
        expect(scope.signal.aborted).toBe(false)
        return ask(input, scope)
      }
    }
    const rungs = [model('big', noting('big')), model('small', noting('small')), sorry]
    expect(await ladder(rungs).run('Why?', soon())).toMatchObject({ text: 'word word', rung: 'small' })
    expect(signals).toHaveLength(2)
    expect(signals[0]).not.toBe(signals[1])
    expect(signals[0]?.aborted).toBe(true)
  })

  test('of which every rung fails comes to an end, after the attempts that it has', async () => {
    const failing = [errorAnswer(503, {}, { 'retry-after': '0' })]
    const provider = await providerOf({ big: failing, small: failing, tiny: failing })
    const answering = ladder([
      rungOf(provider, 'big', { attempts: 2 }),
      rungOf(provider, 'small', { attempts: 3 }),
      rungOf(provider, 'tiny', { attempts: 1 }),
    ]).run('Why?', soon())
    await expect(answering).rejects.toMatchObject({ outcome: 'upstream_error' })
    const counts = ['big', 'small', 'tiny'].map((name) => asksOf(provider, name).length)
    expect(counts).toEqual([2, 3, 1])
  })
})

describe('attempts are those of the ladder, and the SDK adds none to them', () => {
  const asks: Readonly<Record<string, (provider: LocalProvider) => AskModel<string>>> = {
    'openai, chat completions': (provider) => chat(provider, 'big'),
    'openai, responses': ({ openaiUrl }) => {
      const client = new OpenAI({ fetch, baseURL: openaiUrl, apiKey: 'test' })
      return (input, scope) => openaiResponses(client, { model: 'big', input }, scope)
    },
    anthropic: ({ url }) => {
      const client = new Anthropic({ fetch, baseURL: url, apiKey: 'test' })
      return (_, scope) => anthropicMessages(client, { model: 'big', max_tokens: 9, messages }, scope)
    },
    'ai sdk': ({ openaiUrl }) => {
      const big = createOpenAI({ fetch, baseURL: openaiUrl, apiKey: 'test' }).chat('big')
      return (input, scope) => aiSdk(big, { prompt: input }, scope)
    },
    langchain: ({ openaiUrl }) => {
      const configuration = { baseURL: openaiUrl, fetch }
      const big = new ChatOpenAI({ model: 'big', apiKey: 'test', configuration })
      return (input, scope) => langchainChat(big, input, scope)
    },
  }

  test.each(Object.entries(asks))('%s', async (_, askOf) => {
    const provider = await providerOf({ big: [errorAnswer(503, {}, { 'retry-after': '0' })] })
    const answer = await ladder([model('big', askOf(provider), { ...atOnce, attempts: 3 }), sorry]).run(
      'Why?',
      soon(),
    )
    expect(answer).toMatchObject({ rung: 'rule', reason: 'upstream_error' })
    expect(provider.requests).toHaveLength(3)
  })
})

describe('a user who stops', () => {
  test('while the ladder waits for another attempt is let go at once', async () => {
    const provider = await providerOf({ big: [errorAnswer(503, {}, { 'retry-after': '3' })] })
    const controller = new AbortController()
    const big = model('big', chat(provider, 'big'), { attempts: 3, budget: null })
    const answering = ladder([big, sorry]).run('Why?', { ...soon(), signal: controller.signal })
    answering.catch(() => undefined)
    await (
      await provider.nextRequest()
    ).closed
    // the failed answer reaches the ladder, which then waits for three seconds
    await new Promise((resolve) => setTimeout(resolve, 200))
    const leftAt = performance.now()
    controller.abort()
    await expect(answering).rejects.toMatchObject({ outcome: 'cancelled' })
    expect(performance.now() - leftAt).toBeLessThan(1_000)
    expect(provider.requests).toHaveLength(1)
  })

  test('in the middle gets no further attempt and no rung, trips no breaker, and pays for what has come', async () => {
    const provider = await providerOf({ big: [steadyTokens(1000, 20)] })
    const guard = breaker('big', { failures: 1 })
    const cost = new CostMeter({ prices: { big: { input: 1, output: 10 } } })
    const controller = new AbortController()
    let ruled = 0
    const apology = rule<string>(() => {
      ruled += 1
      return 'sorry'
    })
    const stream = ladder([rungOf(provider, 'big', { attempts: 3, breaker: guard }), apology], {
      cost,
      feature: 'chat',
      tenant: 'acme',
    }).stream('Why?', { ...soon(), signal: controller.signal })
    let tokens = 0
    let leftAt = 0
    const reading = (async () => {
      for await (const _ of stream) {
        tokens += 1
        if (tokens !== 4) continue
        leftAt = performance.now()
        controller.abort()
      }
    })()
    await expect(reading).rejects.toMatchObject({ outcome: 'cancelled' })
    const [request] = provider.requests
    const closed = await request?.closed
    expect(closed?.byClient).toBe(true)
    expect((closed?.at ?? Infinity) - leftAt).toBeLessThan(1_000)
    const sent = request?.tokensSent
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(request?.tokensSent).toBe(sent)
    expect(provider.requests).toHaveLength(1)
    expect(ruled).toBe(0)
    expect(guard.state).toBe('closed')
    const [row] = cost.report()
    expect(row).toMatchObject({ feature: 'chat', tenant: 'acme', model: 'big', calls: 1, abandoned: 1 })
    expect(row?.outputTokens).toBeGreaterThanOrEqual(3)
    expect(row?.inputTokens).toBeGreaterThan(0)
    expect(row?.estimated).toBe(row?.amount)
  })
})

test('a model that keeps saying nothing is left alone: the ladder answers at once, the provider hears no more', async () => {
  const provider = await providerOf({ big: [neverAnswers()], small: [steadyTokens(2)] })
  const guard = breaker('big', { failures: 2, halfOpenAfter: '60s' })
  const answers = ladder([rungOf(provider, 'big', { breaker: guard }), rungOf(provider, 'small'), sorry])
  for (const reason of ['first_token_timeout', 'first_token_timeout', 'circuit_open', 'circuit_open']) {
    expect(await answers.run('Why?', soon())).toMatchObject({ rung: 'small', reason })
  }
  expect(asksOf(provider, 'big')).toHaveLength(2)
  expect(guard.state).toBe('open')
})
