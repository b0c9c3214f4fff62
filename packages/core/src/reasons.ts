import {
  BudgetTooSmallError,
  CancelledError,
  DeadlineExceededError,
  type ErrorDetails,
  isTimeBudgetError,
  OperationTimeoutError,
  type TimeBudgetError,
} from './errors.ts'

interface SpentBudget {
  readonly budget: number
  readonly label: string | undefined
  elapsed(): number
}

/** Why a deadline that ran out has ended. `left` is what its parent still has, in milliseconds. */
export function timeIsUp(
  spent: SpentBudget,
  { ofOperation, left }: { readonly ofOperation: boolean; readonly left: number },
): TimeBudgetError {
  const details = { operation: spent.label, budget: spent.budget, elapsed: spent.elapsed() }
  const budget = Math.round(spent.budget)
  if (!ofOperation) {
    return new DeadlineExceededError(`the deadline of ${budget} ms has passed`, { ...details, remaining: 0 })
  }
  return new OperationTimeoutError(
    `${spent.label ?? 'the operation'} took longer than its ${budget} ms; the request has ${Math.floor(left)} ms left`,
    { ...details, remaining: left },
  )
}

/** A cancellation's reason: ours as it is, anything else as the cause of a CancelledError. */
export function cancellation(reason: unknown, details: ErrorDetails): TimeBudgetError {
  if (isTimeBudgetError(reason)) return reason
  return new CancelledError('the work was cancelled', { ...details, cause: reason })
}

/** Why work was not begun: it needs more than what is left. Milliseconds. */
export function budgetTooSmall(short: {
  readonly operation: string | undefined
  readonly needed: number
  readonly remaining: number
  readonly of: SpentBudget
}): BudgetTooSmallError {
  const { operation, needed, remaining, of } = short
  return new BudgetTooSmallError(
    `${operation ?? 'the work'} needs ${Math.ceil(needed)} ms, ${Math.floor(remaining)} ms of ${Math.round(of.budget)} ms are left`,
    { operation, budget: of.budget, elapsed: of.elapsed(), remaining },
  )
}
