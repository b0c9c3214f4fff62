import type { FloorQuestionable } from '@timebudget/core'
import { SlidingCount } from './sliding-count.ts'
import type { Latency } from './latency.ts'

const slices = 6

// Enough for a median; a ring of them costs a start nothing.
const budgetsKept = 64

// A budget that four of five calls miss is a mistake, or a machine for making timeouts.
const hardlyMet = 0.2

const pauseBetweenLooks = 1000

interface FloorStart {
  readonly now: number
  readonly remaining: number
  readonly below: boolean
}

/** Finds out whether a floor, or the budgets that it sees, make no sense. */
export class FloorDoubts {
  readonly #operation: string
  readonly #minSamples: number
  readonly #starts: SlidingCount
  readonly #below: SlidingCount
  readonly #budgets: number[] = []
  #next = 0
  #lookedAt = -Infinity

  constructor(
    operation: string,
    { window, minSamples }: { readonly window: number; readonly minSamples: number },
  ) {
    this.#operation = operation
    this.#minSamples = minSamples
    this.#starts = new SlidingCount({ slice: window / slices, slices })
    this.#below = new SlidingCount({ slice: window / slices, slices })
  }

  /** Notes a start: what was left, and whether that was less than the floor. */
  note({ now, remaining, below }: FloorStart): void {
    this.#starts.add(now)
    if (below) this.#below.add(now)
    if (remaining === Infinity) return
    this.#budgets[this.#next] = remaining
    this.#next = (this.#next + 1) % budgetsKept
  }

  /** What is worth asking now, once a second at most. */
  look(now: number, { latency, floor }: { latency: Latency; floor: number }): FloorQuestionable | undefined {
    if (now - this.#lookedAt < pauseBetweenLooks) return undefined
    this.#lookedAt = now
    return this.#shortBudgets(latency) ?? this.#mostRefused(now, floor)
  }

  #shortBudgets(latency: Latency): FloorQuestionable | undefined {
    if (this.#budgets.length < Math.min(this.#minSamples, budgetsKept)) return undefined
    const budget = this.#budgets.toSorted((a, b) => a - b)[this.#budgets.length >>> 1] ?? Infinity
    const share = latency.chance(budget)
    if (share === undefined || share >= hardlyMet) return undefined
    const message = `${percent(share)} of calls finish within this budget of ${Math.round(budget)} ms`
    return { operation: this.#operation, kind: 'budget_too_short', share, message }
  }

  #mostRefused(now: number, floor: number): FloorQuestionable | undefined {
    const starts = this.#starts.total(now)
    const share = this.#below.total(now) / starts
    if (starts < this.#minSamples || share <= 0.5) return undefined
    const message = `${percent(share)} of starts have less left than the learned floor of ${Math.round(floor)} ms`
    return { operation: this.#operation, kind: 'refuses_most', share, message }
  }
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}
