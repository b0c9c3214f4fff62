import {
  type Clock,
  type Duration,
  OverloadedError,
  parseDuration,
  refuseUnknownOptions,
} from '@timebudget/core'
import { LRUCache } from 'lru-cache'

/** The most that somebody may spend in any such length of time. */
export interface SpendingLimit {
  /** In the meter's currency. */
  readonly limit: number
  /** `'1d'` */
  readonly per?: Duration | undefined
}

interface Spent {
  amount: number
  /** When the period ends, by the monotonic clock. */
  endsAt: number
}

/** Whose spending is remembered: more payers than that in one period are forgotten, longest unseen first. */
const mostPayers = 10_000

/** What each payer has spent in the running period, and whether that is enough. */
export class Spending {
  readonly #limits: ReadonlyMap<string, { readonly limit: number; readonly per: number }>
  readonly #spent = new LRUCache<string, Spent>({ max: mostPayers })
  readonly #clock: Clock

  /** @throws TypeError that names the limit which cannot be read. */
  constructor(limits: Readonly<Record<string, SpendingLimit>>, { clock }: { readonly clock: Clock }) {
    this.#clock = clock
    this.#limits = new Map(
      Object.entries(limits).map(([tenant, spending]) => {
        refuseUnknownOptions(spending, ['limit', 'per'], `budgets['${tenant}']`)
        const { limit, per = '1d' } = spending
        if (!(limit >= 0)) throw new TypeError(`budgets['${tenant}'].limit: expected an amount, got ${limit}`)
        return [tenant, { limit, per: parseDuration(per, `budgets['${tenant}'].per`) }]
      }),
    )
  }

  add(tenant: string | undefined, amount: number): void {
    const payer = tenant ?? ''
    const rule = this.#limits.get(payer) ?? this.#limits.get('*')
    if (rule === undefined) return
    const spent = this.#current(payer)
    if (spent === undefined) this.#spent.set(payer, { amount, endsAt: this.#clock.now() + rule.per })
    else spent.amount += amount
  }

  /** Why this payer gets no model: its budget is spent. */
  refuse(tenant: string | undefined): OverloadedError | undefined {
    const payer = tenant ?? ''
    const rule = this.#limits.get(payer) ?? this.#limits.get('*')
    const spent = this.#current(payer)
    if (rule === undefined || (spent?.amount ?? 0) < rule.limit) return undefined
    const retryAfter = spent === undefined ? undefined : spent.endsAt - this.#clock.now()
    return new OverloadedError(`${tenant ?? 'the tenant'} has spent its budget of ${rule.limit}`, {
      retryAfter,
    })
  }

  #current(payer: string): Spent | undefined {
    const spent = this.#spent.get(payer)
    return spent === undefined || this.#clock.now() >= spent.endsAt ? undefined : spent
  }
}
