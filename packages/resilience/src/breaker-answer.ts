import { isOutcome, isTimeBudgetError, type Outcome } from '@timebudget/core'
import type { CallEnd } from './breaker-options.ts'
import { headersOf, valuesOf } from './pushback.ts'
import { causesOf, hasMembers, lookAt, type Unknowns } from './retry-causes.ts'
import { statusOf } from './retry-verdict.ts'

/** What an answer says, whichever client brought it and whether or not it was thrown. */
export interface Answer {
  /** HTTP's; of gRPC the one that stands for its status. */
  readonly status: number
  /** What the time or the patience of the caller has to do with it. */
  readonly outcome: Outcome | undefined
}

/** The answer in how a call ended: a response that was returned, or one that an error stands for or carries. */
export function answerIn(end: CallEnd): Answer | undefined {
  return lookAt(() => findAnswer(end), undefined)
}

function findAnswer(end: CallEnd): Answer | undefined {
  if (end.kind === 'result') {
    // what merely has a status, such as an order or a job, is no response
    return hasMembers(end.result) && hasMembers(end.result['headers']) ? httpAnswer(end.result) : undefined
  }
  for (const link of causesOf(end.error)) {
    // the status of our own errors is what they are answered with here
    const answer = isTimeBudgetError(link) ? undefined : (httpAnswer(link) ?? grpcAnswer(link))
    if (answer !== undefined) return answer
  }
  return undefined
}

function httpAnswer(link: Unknowns): Answer | undefined {
  const status = statusOf(link)
  if (status === undefined) return undefined
  const [outcome] = headersOf(link).flatMap((headers) => valuesOf(headers, 'x-deadline-outcome'))
  return { status, outcome: isOutcome(outcome) ? outcome : undefined }
}

const cancelled = 1
const deadlineExceeded = 4

/** HTTP statuses by gRPC status, as google.rpc.Code pairs them; all others are 500. */
const statusByGrpc: Readonly<Record<number, number>> = {
  [cancelled]: 499,
  3: 400,
  [deadlineExceeded]: 504,
  5: 404,
  6: 409,
  7: 403,
  8: 429,
  9: 400,
  10: 409,
  11: 400,
  12: 501,
  14: 503,
  16: 401,
}

function grpcAnswer({ code, metadata }: Unknowns): Answer | undefined {
  if (typeof code !== 'number' || !hasMembers(metadata)) return undefined
  return { status: statusByGrpc[code] ?? 500, outcome: outcomeByGrpc(code) }
}

function outcomeByGrpc(code: number): Outcome | undefined {
  if (code === cancelled) return 'cancelled'
  return code === deadlineExceeded ? 'deadline_exceeded' : undefined
}
