import { type Clock, type OverloadedError, refuseUnknownOptions, systemClock } from '@timebudget/core'
import { LRUCache } from 'lru-cache'
import { llmCallFinished } from './call-events.ts'
import { isAbandoned, type LlmCall } from './call-record.ts'
import type { CostBook, Payer } from './cost-book.ts'
import { formatCosts } from './cost-table.ts'
import { checkPrices, type Cost, costOfUsage, priceOf, type Prices } from './prices.ts'
import { Spending, type SpendingLimit } from './spending.ts'

/** How costs are counted. */
export interface CostMeterOptions {
  readonly prices: Prices
  /** ISO 4217; `'USD'`. */
  readonly currency?: string | undefined
  /** What each tenant may spend; `'*'` is everybody whom no other entry names, each alone. */
  readonly budgets?: Readonly<Record<string, SpendingLimit>> | undefined
  readonly clock?: Clock | undefined
}

/** What one feature has cost one tenant by one model. */
export interface CostRow {
  readonly feature: string
  readonly tenant: string
  readonly model: string
  readonly calls: number
  /** Calls that ended otherwise than well, the abandoned ones included. */
  readonly failed: number
  /** Calls whose user left or stopped them. */
  readonly abandoned: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
  readonly amount: number
  /** How much of the amount rests on estimates. */
  readonly estimated: number
  /** Calls that no price is known for, or no usage: they are missing from the amount. */
  readonly unpriced: number
}

/** What one feature has cost one tenant per task that came to a complete answer. */
export interface TaskCost {
  readonly feature: string
  readonly tenant: string
  readonly amount: number
  readonly successes: number
  /** Absent before the first success. */
  readonly costPerSuccess: number | undefined
}

const optionNames = ['prices', 'currency', 'budgets', 'clock'] as const satisfies (keyof CostMeterOptions)[]

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Rows kept, and tasks; feature and tenant may come from outside. */
const mostRows = 10_000
const unnamed = '-'

/**
 * Counts what calls to models cost: whose they are, failed and abandoned ones included.
 *
 *     const meter = new CostMeter({ prices: { 'gpt-5': { input: 1.25, output: 10, cachedInput: 0.125 } } })
 *     meter.watch()
 *     console.log(meter.table())
 */
export class CostMeter implements CostBook {
  readonly currency: string
  readonly #prices: Prices
  readonly #spending: Spending
  readonly #rows = new LRUCache<string, Writable<CostRow>>({ max: mostRows })
  readonly #tasks = new LRUCache<
    string,
    { successes: number; amount: number } & Writable<Pick<TaskCost, 'feature' | 'tenant'>>
  >({ max: mostRows })
  /** A call may be told by its fetch, by its ladder and by `watch`: it is counted once. */
  readonly #counted = new WeakSet<LlmCall>()

  /** @throws TypeError that names the option, the price or the budget which does not exist or cannot be read. */
  constructor(options: CostMeterOptions) {
    refuseUnknownOptions(options, optionNames)
    const { prices, currency = 'USD', budgets = {}, clock = systemClock } = options
    checkPrices(prices)
    this.currency = currency
    this.#prices = prices
    this.#spending = new Spending(budgets, { clock })
  }

  /** Counts every call of the process from now on, until the returned function is called. */
  watch(): () => void {
    return llmCallFinished.subscribe((call) => this.record(call))
  }

  /** Counts a call; a second time it changes nothing. */
  record(call: LlmCall): void {
    if (this.#counted.has(call)) return
    this.#counted.add(call)
    const row = this.#row(call)
    const cost = this.costOf(call)
    row.calls += 1
    if (call.outcome !== 'ok') row.failed += 1
    if (isAbandoned(call.outcome)) row.abandoned += 1
    row.inputTokens += call.usage.inputTokens ?? 0
    row.outputTokens += call.usage.outputTokens ?? 0
    row.cachedTokens += call.usage.cachedTokens ?? 0
    if (cost === undefined) {
      row.unpriced += 1
      return
    }
    row.amount += cost.amount
    if (cost.estimated) row.estimated += cost.amount
    this.#task(call).amount += cost.amount
    this.#spending.add(call.tenant, cost.amount)
  }

  costOf({ model, usage }: Pick<LlmCall, 'model' | 'usage'>): Cost | undefined {
    const price = model === undefined ? undefined : priceOf(this.#prices, model)
    return price === undefined ? undefined : costOfUsage(usage, price, this.currency)
  }

  refuse({ tenant }: Payer): OverloadedError | undefined {
    return this.#spending.refuse(tenant)
  }

  noteSuccess(payer: Payer): void {
    this.#task(payer).successes += 1
  }

  /** What was spent, dearest first. */
  report(): readonly CostRow[] {
    return [...this.#rows.values()].sort((one, other) => other.amount - one.amount)
  }

  /** The report as text, for people. */
  table(): string {
    return formatCosts(this.report(), this.currency)
  }

  /** What each feature has cost each tenant per task that came to a complete answer, dearest first. */
  tasks(): readonly TaskCost[] {
    return [...this.#tasks.values()]
      .map((task) => ({
        ...task,
        costPerSuccess: task.successes === 0 ? undefined : task.amount / task.successes,
      }))
      .sort((one, other) => other.amount - one.amount)
  }

  #row({
    feature = unnamed,
    tenant = unnamed,
    model = unnamed,
  }: Pick<LlmCall, 'feature' | 'tenant' | 'model'>): Writable<CostRow> {
    const key = JSON.stringify([feature, tenant, model])
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const counts = { calls: 0, failed: 0, abandoned: 0, unpriced: 0 }
    const tokens = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 }
    const row = { feature, tenant, model, ...counts, ...tokens, amount: 0, estimated: 0 }
    this.#rows.set(key, row)
    return row
  }

  #task({ feature = unnamed, tenant = unnamed }: Payer): { successes: number; amount: number } {
    const key = JSON.stringify([feature, tenant])
    const known = this.#tasks.get(key)
    if (known !== undefined) return known
    const task = { feature, tenant, amount: 0, successes: 0 }
    this.#tasks.set(key, task)
    return task
  }
}
