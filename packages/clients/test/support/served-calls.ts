import { type Outcome, type RequestFinished, requestFinished, workLate } from '@timebudget/core'
import { afterEach, beforeEach } from 'vitest'

/** What the servers of a test have told of their calls. */
export interface ServedCalls {
  readonly finished: readonly RequestFinished[]
  outcomes(): Outcome[]
  /** How many answers came after the end of their calls. */
  readonly lateAnswers: number
}

/** Listens in each test of the file that calls this. */
export function servedCalls(): ServedCalls {
  const finished: RequestFinished[] = []
  let lateAnswers = 0
  let unsubscribe: (() => void)[] = []
  beforeEach(() => {
    finished.length = 0
    lateAnswers = 0
    unsubscribe = [
      requestFinished.subscribe((event) => void finished.push(event)),
      workLate.subscribe(({ kind }) => void (lateAnswers += kind === 'answer' ? 1 : 0)),
    ]
  })
  afterEach(() => {
    for (const stop of unsubscribe) stop()
  })
  return {
    finished,
    outcomes: () => finished.map(({ outcome }) => outcome),
    get lateAnswers() {
      return lateAnswers
    },
  }
}
