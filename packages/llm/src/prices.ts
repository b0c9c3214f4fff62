import type { Usage } from './usage.ts'

/** What a model costs, per million tokens. */
export interface Price {
  readonly input: number
  readonly output: number
  /** For input that the provider has in its cache; as `input` if absent. */
  readonly cachedInput?: number | undefined
}

/** By the model's name, or the beginning of it: `gpt-5` is also the price of `gpt-5-2026-08-07`. The longest one counts. */
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
  for (const [model, price] of Object.entries(prices)) {
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

/** The price of a model; `undefined` if there is none. */
export function priceOf(prices: Prices, model: string): Price | undefined {
  if (Object.hasOwn(prices, model)) return prices[model]
  const prefix = Object.keys(prices)
    .filter((name) => model.startsWith(name))
    .reduce<string | undefined>(
      (longest, name) => (name.length > (longest?.length ?? -1) ? name : longest),
      undefined,
    )
  return prefix === undefined ? undefined : prices[prefix]
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
