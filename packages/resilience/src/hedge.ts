import { CancelledError, type Clock, type ClockTimer } from '@timebudget/core'
import { discardAnswer } from './retry-answer.ts'
import type { Attempt, AttemptEnd } from './retry-attempt.ts'

/** How a second attempt is put beside one that runs. */
export interface HedgePlan<T> {
  /** Milliseconds after the first. */
  readonly after: number
  readonly clock: Clock
  /** Begins the second attempt, if there may be one. */
  begin(): Attempt<T> | undefined
}

/**
 * How an attempt ends that gets a second one beside it if it takes longer than most: by the first success of the two,
 * or by a failure that the other would end with too. The slower one is cancelled.
 */
export async function endOfHedged<T>(first: Attempt<T>, plan: HedgePlan<T>): Promise<AttemptEnd<T>> {
  if (!(await takesLongerThan(plan.after, first, plan.clock))) return first.end
  // here, not in the timer: the second attempt belongs to the caller's async context
  const second = plan.begin()
  return second === undefined ? first.end : quickestOf([first, second])
}

async function takesLongerThan<T>(milliseconds: number, attempt: Attempt<T>, clock: Clock): Promise<boolean> {
  let timer: ClockTimer | undefined
  const isLate = new Promise<boolean>((resolve) => {
    timer = clock.wakeAfter(milliseconds, () => resolve(true))
  })
  try {
    return await Promise.race([isLate, attempt.end.then(() => false)])
  } finally {
    timer?.cancel()
  }
}

function quickestOf<T>(attempts: readonly Attempt<T>[]): Promise<AttemptEnd<T>> {
  return new Promise((resolve) => {
    let running = attempts.length
    let isOver = false
    // what one peer demands before the next attempt counts after the other's failure too
    let notBefore = 0
    const onEnd = (attempt: Attempt<T>, end: AttemptEnd<T>): void => {
      running -= 1
      const isForNobody = isOver || (end.kind === 'failed' && end.verdict.isRetryable && running > 0)
      if (end.kind === 'failed') notBefore = Math.max(notBefore, end.notBefore)
      if (isForNobody) return discardEnd(end)
      isOver = true
      resolve(end.kind === 'failed' ? { ...end, notBefore } : end)
      for (const other of attempts)
        if (other !== attempt) other.cancel(new CancelledError('another attempt was quicker'))
    }
    for (const attempt of attempts) void attempt.end.then((end) => onEnd(attempt, end))
  })
}

function discardEnd<T>(end: AttemptEnd<T>): void {
  discardAnswer(end.kind === 'answered' ? end.value : end.answer?.value)
}
