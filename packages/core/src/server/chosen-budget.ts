import { type Duration, parseDuration } from '../duration.ts'
import type { ResolvedServerOptions } from './options.ts'

/** Options of a server, of which a budget may be chosen by each request. */
interface Choosing<R> extends Pick<ResolvedServerOptions, 'budget' | 'max'> {
  readonly chooseBudget: ((request: R) => Duration | undefined) | undefined
}

/** The options for this request: with the budget that a `default` which is a function gives it. */
export function optionsFor<R, O extends Choosing<R>>(request: R, options: O): O {
  return options.chooseBudget === undefined ? options : { ...options, budget: budgetFor(request, options) }
}

/**
 * The budget of this request if it brings no deadline, ms, at most `max`. A choice that fails, or that is none, is that of
 * somebody who gave no `default`.
 */
export function budgetFor<R>(request: R, { chooseBudget, budget, max }: Choosing<R>): number {
  if (chooseBudget === undefined) return budget
  try {
    const choice = chooseBudget(request)
    return choice === undefined ? budget : Math.min(parseDuration(choice, 'default'), max)
  } catch (error) {
    process.emitWarning(`default failed: ${String(error)}`, 'TimeBudgetWarning')
    return budget
  }
}
