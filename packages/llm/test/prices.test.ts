import { expect, test } from 'vitest'
import { costOfUsage, priceOf, type Prices } from '../src/prices.ts'

const prices: Prices = {
  'gpt-5': { input: 1.25, output: 10, cachedInput: 0.125 },
  'gpt-4': { input: 30, output: 60 },
  'gemini-3-flash': { input: 0.3, output: 2.5 },
  'claude-opus-5': { input: 5, output: 25 },
}

test.each([
  { model: 'gpt-5', input: 1.25 },
  { model: 'gpt-5-2026-08-07', input: 1.25 },
  { model: 'gpt-4-0613', input: 30 },
  { model: 'gemini-3-flash-001', input: 0.3 },
  { model: 'claude-opus-5-20261101', input: 5 },
  { model: 'claude-opus-5-latest', input: 5 },
  { model: 'claude-opus-5@20261101', input: 5 },
  { model: 'claude-opus-5-20261101-v1:0', input: 5 },
])('$model has the price of its family', ({ model, input }) => {
  expect(priceOf(prices, model)?.input).toBe(input)
})

test.each(['gpt-5-mini', 'gpt-5-mini-2026-08-07', 'gpt-5.1', 'gpt-4o', 'gpt-4-32k', 'gpt', 'constructor'])(
  '%s has no price unless somebody gives it one',
  (model) => {
    expect(priceOf(prices, model)).toBeUndefined()
  },
)

test('a price for * is that of every model that has none', () => {
  const all = { ...prices, '*': { input: 7, output: 7 } }
  expect(['gpt-5', 'gpt-5-mini', 'constructor'].map((model) => priceOf(all, model)?.input)).toEqual([
    1.25, 7, 7,
  ])
})

test('cached input has its own price, and is part of the input', () => {
  const usage = { inputTokens: 1_000_000, cachedTokens: 400_000, outputTokens: 100_000, estimated: false }
  expect(costOfUsage(usage, { input: 1, output: 10, cachedInput: 0.1 }, 'USD')).toEqual({
    amount: 1.64,
    currency: 'USD',
    estimated: false,
  })
  expect(costOfUsage(usage, { input: 1, output: 10 }, 'USD')?.amount).toBe(2)
})

test('of unknown usage nothing is known, and of half of it an estimate', () => {
  expect(costOfUsage({ estimated: false }, { input: 1, output: 1 }, 'USD')).toBeUndefined()
  expect(
    costOfUsage({ inputTokens: 0, outputTokens: 0, estimated: false }, { input: 1, output: 1 }, 'USD'),
  ).toEqual({
    amount: 0,
    currency: 'USD',
    estimated: false,
  })
  const half = costOfUsage({ inputTokens: 1_000_000, estimated: false }, { input: 1, output: 1 }, 'EUR')
  expect(half).toEqual({ amount: 1, currency: 'EUR', estimated: true })
})
