import type { Deadline } from '@timebudget/core'

/** A rung that has found too little time, in milliseconds. */
interface ShortRung {
  readonly ladder: string
  readonly rung: string
  readonly floor: number
  /** For the rungs after it, and for sending the answer. */
  readonly kept: number
}

/** Warns if what a rung needs is more than a whole request has; says whether it has. */
export function warnOfTooSmallBudget(deadline: Deadline, { ladder, rung, floor, kept }: ShortRung): boolean {
  const budget = wholeBudgetOf(deadline)
  if (floor + kept <= budget) return false
  const comesAfter = kept === 0 ? '' : `, and ${Math.ceil(kept)} ms are kept for what comes after it`
  process.emitWarning(
    `the ladder '${ladder}' can never ask '${rung}' under a budget of ${Math.round(budget)} ms: its floor is ` +
      `${Math.ceil(floor)} ms${comesAfter}`,
    'TimeBudgetWarning',
  )
  return true
}

/** Milliseconds; that of the request, where this is the deadline of one of its operations. */
function wholeBudgetOf({ budget, ledger }: Deadline): number {
  return ledger.entries.reduce(
    (most, { start, remaining, source }) => (source === 'local' ? Math.max(most, start + remaining) : most),
    budget,
  )
}
