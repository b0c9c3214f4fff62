import { isOutcome, isTimeBudgetError, type Outcome } from '@timebudget/core'
import type { CallEnd } from './breaker-options.ts'

/** What an HTTP answer says, whichever client brought it and whether or not it was thrown. */
export interface Answer {
  readonly status: number
  /** What the peer's own time budget has to do with it. */
  readonly outcome: Outcome | undefined
}

// Deep enough for every client's wrapping, and an end for chains that bite their tail.
const longestCauseChain = 10

/** The HTTP answer in how a call ended: a response that was returned, or one that an error stands for or carries. */
export function answerIn(end: CallEnd): Answer | undefined {
  if (end.kind === 'result') return readAnswer(end.result, { needsHeaders: true })
  let link = end.error
  for (let depth = 0; depth < longestCauseChain && isRecord(link); depth += 1) {
    // the status of our own errors is what they are answered with here
    const answer = isTimeBudgetError(link)
      ? undefined
      : (readAnswer(link['response'], { needsHeaders: false }) ?? readAnswer(link, { needsHeaders: false }))
    if (answer !== undefined) return answer
    link = link['cause']
  }
  return undefined
}

/** With `needsHeaders`, what merely has a status, such as a job or an order, is not taken for an answer. */
function readAnswer(
  value: unknown,
  { needsHeaders }: { readonly needsHeaders: boolean },
): Answer | undefined {
  if (!isRecord(value)) return undefined
  const status = value['status'] ?? value['statusCode']
  if (typeof status !== 'number' || !(status >= 100 && status <= 599)) return undefined
  const headers = value['headers']
  if (!isRecord(headers)) return needsHeaders ? undefined : { status, outcome: undefined }
  const outcome = readHeader(headers, 'x-deadline-outcome')
  return { status, outcome: isOutcome(outcome) ? outcome : undefined }
}

function readHeader(headers: Record<string, unknown>, name: string): string | undefined {
  const value: unknown = typeof headers['get'] === 'function' ? headers['get'](name) : headers[name]
  return typeof value === 'string' ? value : undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
