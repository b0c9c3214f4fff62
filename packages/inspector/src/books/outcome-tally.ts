import type { Outcome } from '@timebudget/core'
import type { OutcomeCount } from '../snapshot.ts'

/** How often each outcome came. */
export class OutcomeTally {
  readonly #counts = new Map<Outcome, number>()

  add(outcome: Outcome): void {
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1)
  }

  view(): OutcomeCount[] {
    return Array.from(this.#counts, ([outcome, count]) => ({ outcome, count })).sort(
      (one, other) => other.count - one.count,
    )
  }
}
