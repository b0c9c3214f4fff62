import { refuseUnknownOptions } from '@timebudget/core'
import type { Usage } from './usage.ts'

/** What a model costs, per million tokens. */
export interface Price {
  readonly input: number
  readonly output: number
  /** For input that the provider has in its cache; as `input` if absent. */
  readonly cachedInput?: number | undefined
}

/**
 * By the model's name, which is also that of its dated versions: `gpt-5` prices `gpt-5-2026-08-07`, but not `gpt-5-mini`.
 * `'*'` prices all that no other entry names.
 */
export type Prices = Readonly<Record<string, Price>>

/** An amount of money. */
export interface Cost {
  readonly amount: number
  /** ISO 4217; `USD`. */
  readonly currency: string
  /** Whether it rests on an estimate of the tokens. */
  readonly estimated: boolean
}

const million = 1_000_000

/** @throws TypeError that names the price which is no price. */
export function checkPrices(prices: Prices): void {
  const given: unknown = prices
  if (typeof given !== 'object' || given === null)
    throw new TypeError("prices: expected a price by model, such as { 'gpt-5': { input: 1.25, output: 10 } }")
  for (const [model, price] of Object.entries(prices)) {
    refuseUnknownOptions(price, ['input', 'output', 'cachedInput'], `prices['${model}']`)
    for (const kind of ['input', 'output', 'cachedInput'] as const) {
      const value = price[kind]
      if (value === undefined && kind === 'cachedInput') continue
      if (typeof value === 'number' && value >= 0 && value < Infinity) continue
      throw new TypeError(
        `prices['${model}'].${kind}: expected an amount per million tokens, got ${String(value)}`,
      )
    }
  }
}

// `-2026-08-07`, `-20260807`, `-0613`, `-001`, `@20260807`, `-20260807-v1:0`, `-latest`
const version = /^[-@:](?:latest|\d{3,8}(?:-\d\d){0,2}(?:-v\d+(?::\d+)?)?)$/

/** The price of a model; `undefined` if there is none. */
export function priceOf(prices: Prices, model: string): Price | undefined {
  if (Object.hasOwn(prices, model)) return prices[model]
  const family = Object.keys(prices).find(
    (name) => model.startsWith(name) && version.test(model.slice(name.length)),
  )
  return prices[family ?? '*']
}

/** What that usage costs; `undefined` if nothing is known of it. */
export function costOfUsage(usage: Usage, price: Price, currency: string): Cost | undefined {
  const { inputTokens, outputTokens, cachedTokens = 0 } = usage
  if (inputTokens === undefined && outputTokens === undefined) return undefined
  const fresh = Math.max(0, (inputTokens ?? 0) - cachedTokens)
  const amount =
    (fresh * price.input +
      cachedTokens * (price.cachedInput ?? price.input) +
      (outputTokens ?? 0) * price.output) /
    million
  const isPartial = inputTokens === undefined || outputTokens === undefined
  return { amount, currency, estimated: usage.estimated || isPartial }
}

/** Both; the one that is known where only one is. */
export function addCost(one: Cost | undefined, other: Cost | undefined): Cost | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return { ...one, amount: one.amount + other.amount, estimated: one.estimated || other.estimated }
}
