import type { Outcome } from '@timebudget/core'
import type { Cost } from './prices.ts'
import type { Usage } from './usage.ts'

/** What a ladder came to. */
export interface Answer {
  readonly text: string
  /** `false` if it was cut off; `reason` says by what. */
  readonly complete: boolean
  /** Whether it is anything else than the whole answer of the first rung: another rung's, or one that was cut off. */
  readonly degraded: boolean
  /** The rung that gave it. */
  readonly rung: string
  /** What kept the first rung from giving it, or what cut it off; absent for a complete answer of the first rung. */
  readonly reason: Outcome | undefined
  /** Each try, in order; rungs that were not begun included. */
  readonly attempts: readonly RungAttempt[]
  /** Of all tries together: failed and abandoned ones were paid for too. */
  readonly usage: Usage
  /** Of all tries together; absent if no price is known. */
  readonly cost: Cost | undefined
  readonly timings: AnswerTimings
  /** Where to ask later, if the work has been put off. */
  readonly job: JobTicket | undefined
}

/** Milliseconds, to a tenth; of the call that answered, and from the ladder's start for `total`. */
export interface AnswerTimings {
  readonly connect: number | undefined
  readonly firstToken: number | undefined
  readonly total: number
}

/** One try of one rung. */
export interface RungAttempt {
  readonly rung: string
  /** Of this rung, from 1; 0 if it was not begun. */
  readonly attempt: number
  readonly outcome: Outcome
  readonly error: unknown
  /** Milliseconds, to a tenth. */
  readonly spent: number
}

/** Work that has been put off, and where its result will be. */
export interface JobTicket {
  readonly id: string
  /** A URL or path to ask at. */
  readonly location: string
}

/** The HTTP status of an answer: 202 for work that has been put off, else 200. */
export function statusOf(answer: Answer): 200 | 202 {
  return answer.job === undefined ? 200 : 202
}

/** What an HTTP response says of an answer: `X-Degraded`, and for work that has been put off `Location` and `Retry-After`. */
export function answerHeaders(answer: Answer): Record<string, string> {
  const headers: Record<string, string> = {}
  if (answer.degraded) headers['x-degraded'] = describe(answer)
  if (answer.job !== undefined) {
    headers['location'] = answer.job.location
    headers['retry-after'] = '5'
  }
  return headers
}

/** `rung="small"; reason="first_token_timeout"`: names are the user's, so they are quoted and cleaned. */
function describe({ rung, reason, complete }: Answer): string {
  const parts = [`rung=${quoted(rung)}`]
  if (reason !== undefined) parts.push(`reason=${quoted(reason)}`)
  if (!complete) parts.push('partial')
  return parts.join('; ')
}

function quoted(text: string): string {
  return `"${text.replaceAll(/[^\u0020-\u007e]|["\\]/g, '_')}"`
}
