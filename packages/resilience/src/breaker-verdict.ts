import { findTimeBudgetError, type Outcome } from '@timebudget/core'
import { type Answer, answerIn } from './breaker-answer.ts'
import type { Verdict } from './breaker-circuit.ts'
import type { CallEnd, ResolvedBreakerOptions } from './breaker-options.ts'

/** What the verdict on a call depends on besides its end; milliseconds. */
export interface JudgedCall {
  readonly granted: number
  /** What ended the call before its work did, if something did. */
  readonly cutOffBy: unknown
  /** How long a call must have been granted for its running out of time to mean something. */
  readonly patience: { current(): number }
}

/**
 * What a call's end says about what was called: success also if it answered that the caller was wrong, neutral if the
 * caller gave up, had too little time for it to mean anything, or never asked.
 */
export function judge(
  end: CallEnd,
  call: JudgedCall,
  rules: Pick<ResolvedBreakerOptions, 'failureStatus' | 'isFailure'>,
): Verdict {
  const failure = end.kind === 'error' ? lastAttemptIn(end.error) : undefined
  const ours = findTimeBudgetError(failure)
  if (ours !== undefined && saysNothing(ours.outcome)) return 'neutral'
  const answer = answerIn(end.kind === 'error' ? { kind: 'error', error: failure } : end)
  if (answer?.outcome !== undefined && isGivenUp(answer.outcome)) return 'neutral'
  const decided = rules.isFailure(end)
  if (decided !== undefined) return decided ? 'failure' : 'success'
  if (ours !== undefined && isTimeout(ours.outcome)) {
    // its own time was up, or that of something narrower inside its work
    const granted = ours === call.cutOffBy ? call.granted : Math.min(call.granted, ours.budget ?? Infinity)
    return granted >= call.patience.current() ? 'failure' : 'neutral'
  }
  if (answer !== undefined) return judgeAnswer(answer, call, rules)
  return end.kind === 'error' ? 'failure' : 'success'
}

function judgeAnswer(
  { status, outcome }: Answer,
  { granted, patience }: JudgedCall,
  { failureStatus }: Pick<ResolvedBreakerOptions, 'failureStatus'>,
): Verdict {
  if (!failureStatus(status)) return 'success'
  // the peer had no more time than we gave it
  const forLackOfTime = isTimeout(outcome) || outcome === 'short_circuited' || outcome === 'shed'
  return forLackOfTime && granted < patience.current() ? 'neutral' : 'failure'
}

// More than anybody nests retries, and an end for chains that bite their tail.
const deepest = 10

/** Where there was no time for another attempt, what the last one failed of; else the error itself. */
function lastAttemptIn(error: unknown): unknown {
  let failure = error
  for (let depth = 0; depth < deepest; depth += 1) {
    const ours = findTimeBudgetError(failure)
    if (ours?.outcome !== 'short_circuited' || ours.cause === undefined) break
    failure = ours.cause
  }
  return failure
}

/** Whether it was thrown for somebody who gave up, or by a guard of ours in place of asking. */
function saysNothing(outcome: Outcome): boolean {
  switch (outcome) {
    case 'short_circuited':
    case 'shed':
    case 'circuit_open':
    case 'shutdown':
      return true
    default:
      return isGivenUp(outcome)
  }
}

function isGivenUp(outcome: Outcome): boolean {
  return outcome === 'client_closed' || outcome === 'cancelled'
}

function isTimeout(outcome: Outcome | undefined): boolean {
  return outcome === 'deadline_exceeded' || outcome === 'operation_timeout'
}
