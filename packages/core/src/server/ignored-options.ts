import { isDeepStrictEqual } from 'node:util'
import type { ArrivalOptions } from './arrival.ts'

const warned = new WeakSet<object>()

/** Says, once, which options of a second `deadline()` have no effect since the first has decided them otherwise. */
export function warnOfIgnored(second: ArrivalOptions<never>, first: ArrivalOptions<never>): void {
  if (second.decidedOnArrival.length === 0 || warned.has(second)) return
  warned.add(second)
  const ignored = second.decidedOnArrival.filter((name) => !isDeepStrictEqual(second[name], first[name]))
  if (ignored.length === 0) return
  process.emitWarning(
    `a second deadline() only tightens the first, which has decided ${ignored.join(', ')}`,
    'TimeBudgetWarning',
  )
}

const warnedOfLonger = new WeakSet<object>()

/** Says, once, that a second `deadline()` has a `default` which the first does not give, where no caller asked for less. */
export function warnOfLonger(second: ArrivalOptions<never>, budget: number): void {
  const isLonger = second.isBudgetGiven && second.chooseBudget === undefined && second.budget > budget
  if (!isLonger || warnedOfLonger.has(second)) return
  warnedOfLonger.add(second)
  process.emitWarning(
    `a second deadline() only tightens the first: its default of ${second.budget} ms has no effect on a request that has ${budget} ms; a function as default of the first gives longer ones`,
    'TimeBudgetWarning',
  )
}
