import { Deadline } from '@timebudget/core'
import {
  type AskModel,
  CostMeter,
  Figures,
  governedFetch,
  ladder,
  model,
  openaiChat,
  type Profile,
  rule,
} from '@timebudget/llm'
import {
  localProvider,
  type LocalProvider,
  neverAnswers,
  steadyTokens,
  tokensThenSilence,
} from '@timebudget/llm/testing'
import OpenAI from 'openai'
import { afterEach, expect, test } from 'vitest'

const ample = { connect: '5s', firstToken: '10s', idle: '10s', total: '30s' } satisfies Profile
const messages = [{ role: 'user' as const, content: 'Why?' }]
const sorry = rule<string>(() => 'sorry')
const prices = { big: { input: 1, output: 10 } }

const providers: LocalProvider[] = []
afterEach(async () => {
  for (const provider of providers.splice(0)) await provider.close()
})

async function ask(
  script: ReturnType<typeof neverAnswers>,
  limits: Partial<Profile> = {},
): Promise<{ readonly provider: LocalProvider; readonly big: AskModel<string> }> {
  const provider = await localProvider({ script })
  providers.push(provider)
  const fetch = governedFetch({ profile: { ...ample, ...limits } })
  const client = new OpenAI({ fetch, baseURL: provider.openaiUrl, apiKey: 'test', maxRetries: 0 })
  return { provider, big: (_, scope) => openaiChat(client, { model: 'big', messages }, scope) }
}

test('five tokens and then silence are those five tokens, what they cost, and a stall in the figures', async () => {
  const { big } = await ask(tokensThenSilence(5), { idle: '300ms' })
  const cost = new CostMeter({ prices })
  const figures = new Figures()
  const stop = figures.watch()
  const answers = ladder([model('big', big), sorry], { cost, feature: 'chat', tenant: 'acme' })
  const answer = await answers.run('why?', { deadline: Deadline.after('20s') })
  stop()
  expect(answer).toMatchObject({ complete: false, reason: 'stream_stalled', rung: 'big', degraded: true })
  expect(answer.text).not.toBe('')
  expect(answer.usage.estimated).toBe(true)
  expect(answer.usage.outputTokens).toBeGreaterThanOrEqual(5)
  expect(answer.cost?.amount).toBeGreaterThan(0)
  expect(cost.report()).toMatchObject([{ model: 'big', tenant: 'acme', calls: 1, failed: 1, abandoned: 0 }])
  expect(cost.tasks()).toMatchObject([{ feature: 'chat', successes: 0, costPerSuccess: undefined }])
  expect(figures.current()).toMatchObject({
    questions: 1,
    mainSuccess: 0,
    degradedSuccess: 0,
    partialShare: 1,
    calls: 1,
    stallRate: 1,
    firstTokenTimeoutRate: 0,
  })
})

test('a late first token is in the figures as such, and its question as a degraded success', async () => {
  const { big } = await ask(neverAnswers(), { firstToken: '200ms' })
  const figures = new Figures()
  const stop = figures.watch()
  await ladder([model('big', big), sorry]).run('why?', { deadline: Deadline.after('20s') })
  stop()
  expect(figures.current()).toMatchObject({
    questions: 1,
    mainSuccess: 0,
    degradedSuccess: 1,
    degradedShare: 1,
    firstTokenTimeoutRate: 1,
  })
})

test('leaving a stream while the provider is silent closes its connection', async () => {
  const { provider, big } = await ask(tokensThenSilence(2))
  const stream = ladder([model('big', big), sorry]).stream('why?', { deadline: Deadline.after('20s') })
  const reader = stream[Symbol.asyncIterator]()
  await reader.next()
  await reader.next()
  const pending = reader.next()
  const request = await provider.nextRequest()
  await request.sent(2)
  const leftAt = performance.now()
  await reader.return?.()
  expect((await request.closed).at - leftAt).toBeLessThan(1_000)
  expect(await pending).toMatchObject({ done: true })
  await expect(stream.answer).rejects.toMatchObject({ code: 'CANCELLED' })
})

test('a reader that never comes back holds no provider beyond the deadline', async () => {
  const { provider, big } = await ask(steadyTokens(100_000, 20))
  const deadline = Deadline.after('1s')
  const stream = ladder([model('big', big)]).stream('why?', { deadline })
  await stream[Symbol.asyncIterator]().next()
  expect(await stream.answer).toMatchObject({ complete: false, reason: 'deadline_exceeded', rung: 'big' })
  const request = await provider.nextRequest()
  await request.closed
})
