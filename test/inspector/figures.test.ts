import { defineEvent, type Outcome } from '@timebudget/core'
import { Figures } from '@timebudget/llm'
import { expect, test } from 'vitest'
import { onEnd } from '../../packages/inspector/test/support/server.ts'
import { everything, observe } from '../../packages/inspector/test/support/observed.ts'

const call = defineEvent<object>('timebudget:llm.call.finished')
const answered = defineEvent<object>('timebudget:llm.answered')

test('the inspector and Figures tell the same of a model that never says anything', () => {
  const figures = new Figures()
  onEnd(figures.watch())
  const observatory = observe()
  for (let nth = 0; nth < 40; nth += 1) {
    call.publish(() => ({
      provider: 'openai',
      model: 'gpt-5',
      outcome: nth % 2 === 0 ? 'operation_timeout' : 'first_token_timeout',
      streams: true,
      usage: { estimated: false },
      timings: { total: 1_340 },
      sdkRetry: false,
    }))
  }
  const { calls, firstTokenTimeoutRate, firstTokenP95 } = figures.current()
  expect({ calls, firstTokenTimeoutRate, firstTokenP95 }).toEqual({
    calls: 40,
    firstTokenTimeoutRate: 1,
    firstTokenP95: undefined,
  })
  const { models } = everything(observatory)
  expect(models).toMatchObject({ calls, firstTokenTimeoutRate, firstTokenP95: null })
  expect(models?.models).toMatchObject([{ firstTokenP50: null, firstTokenP95: null }])
})

test('the inspector and Figures tell the same of answers by models', () => {
  const figures = new Figures()
  onEnd(figures.watch())
  const observatory = observe()
  const outcomes: readonly Outcome[] = [
    'ok',
    'ok',
    'ok',
    'first_token_timeout',
    'stream_stalled',
    'upstream_error',
    'client_closed',
    'short_circuited',
    'total_timeout',
  ]
  for (const [index, outcome] of outcomes.entries()) {
    const firstToken = outcome === 'ok' || outcome === 'stream_stalled' ? 100 + index : undefined
    call.publish(() => ({
      provider: 'openai',
      model: 'gpt-5-mini',
      outcome,
      usage: { inputTokens: 10, outputTokens: 5, estimated: false },
      timings: { firstToken, total: 3_000 },
      sdkRetry: index === 2,
    }))
    answered.publish(() => ({
      operation: 'answer',
      outcome,
      answer: index < 6 ? { complete: index !== 4, degraded: index % 2 === 1 } : undefined,
      cost: { amount: 0.01 * index, currency: 'USD', estimated: false },
    }))
  }
  const told = figures.current()
  const { models } = everything(observatory)
  const { questions, abandoned, mainSuccess, degradedSuccess, degradedShare, partialShare } = told
  expect(models).toMatchObject({
    questions,
    abandoned,
    mainSuccess,
    degradedSuccess,
    degradedShare,
    partialShare,
  })
  const { calls, firstTokenTimeoutRate, stallRate, costPerSuccess } = told
  expect(models).toMatchObject({ calls, firstTokenTimeoutRate, stallRate })
  expect(models?.costs).toMatchObject([{ currency: 'USD', perSuccess: costPerSuccess['USD'] }])
})
