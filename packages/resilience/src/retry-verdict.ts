import { isOutcome, isTimeBudgetError, type Outcome, type TimeBudgetError } from '@timebudget/core'
import { headersOf, valuesOf } from './pushback.ts'
import { causesOf, hasMembers, type Unknowns } from './retry-causes.ts'
import { grpcFailureOf } from './retry-grpc.ts'
import { networkFailureOf } from './retry-network.ts'

/** What a failure means for another attempt. */
export interface Verdict {
  /** Whether another attempt can succeed. */
  readonly isRetryable: boolean
  /** Whether the call may have reached its destination. */
  readonly wasSent: boolean
}

/** What is known of the attempt that failed. */
export interface AttemptFacts {
  /** Whether it had all the time there was, rather than a shorter timeout of its own. */
  readonly hadAllTime: boolean
}

/** Statuses that may be others in a moment. */
const passingStatuses: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])

/** Another attempt would end no better. */
export const final: Verdict = { isRetryable: false, wasSent: true }
const refusedHere: Verdict = { isRetryable: false, wasSent: false }
const unsent: Verdict = { isRetryable: true, wasSent: false }
const sent: Verdict = { isRetryable: true, wasSent: true }

/** What our own errors mean by themselves; the others depend on their causes. */
const byOutcome: Readonly<Partial<Record<Outcome, Verdict>>> = {
  connect_timeout: unsent,
  operation_timeout: sent,
  first_token_timeout: sent,
  stream_stalled: sent,
  total_timeout: sent,
  // refused by this very process: calling again at once is what its guards are there to prevent
  short_circuited: refusedHere,
  shed: refusedHere,
  circuit_open: refusedHere,
  deadline_exceeded: final,
  client_closed: final,
  cancelled: final,
  shutdown: final,
}

/** What an error means, found in its chain of causes; what nobody knows is final. */
export function judgeError(error: unknown, facts: AttemptFacts): Verdict {
  const chain = causesOf(error)
  const ours = chain.find((link): link is Unknowns & TimeBudgetError => isTimeBudgetError(link))
  const known = ours === undefined ? undefined : byOutcome[ours.outcome]
  if (known !== undefined) return known
  for (const link of chain) {
    const verdict = isTimeBudgetError(link) ? undefined : judgeLink(link, facts)
    if (verdict !== undefined) return verdict
  }
  if (chain.some((link) => link['code'] === 'ERR_NETWORK')) return sent
  // somebody's own UpstreamError, of which nothing else is known
  return ours?.outcome === 'upstream_error' && ours.cause === undefined ? sent : final
}

/** What an answer means; `undefined` if it is none of HTTP's, or no failure of the peer's. */
export function judgeAnswer(answer: unknown, facts: AttemptFacts): Verdict | undefined {
  if (!hasMembers(answer) || !hasMembers(answer['headers'])) return undefined
  const status = ownStatusOf(answer)
  if (status === undefined || !(status >= 500 || passingStatuses.has(status))) return undefined
  return judgeStatus(status, answer, facts)
}

/** The HTTP status of an answer, or of the one that an error is about. */
export function statusOf(link: Unknowns): number | undefined {
  const response = link['response']
  return ownStatusOf(link) ?? (hasMembers(response) ? ownStatusOf(response) : undefined)
}

function ownStatusOf(link: Unknowns): number | undefined {
  const status = link['status'] ?? link['statusCode']
  return typeof status === 'number' && status >= 100 && status < 1000 ? status : undefined
}

function judgeLink(link: Unknowns, facts: AttemptFacts): Verdict | undefined {
  const status = statusOf(link)
  if (status !== undefined) return judgeStatus(status, link, facts)
  const failure = grpcFailureOf(link) ?? networkFailureOf(link)
  if (failure === undefined) return undefined
  if (failure === 'final' || isOutOfOurTime(link, facts)) return final
  return failure === 'sent' ? sent : unsent
}

function judgeStatus(status: number, link: Unknowns, facts: AttemptFacts): Verdict {
  if (!passingStatuses.has(status) || isOutOfOurTime(link, facts)) return final
  // what OpenAI and Anthropic send where they know better
  return headerOf(link, 'x-should-retry') === 'false' ? final : sent
}

/** Whether a peer that had all our time says that it was not enough: there is none for another attempt either. */
function isOutOfOurTime(link: Unknowns, { hadAllTime }: AttemptFacts): boolean {
  const outcome = headerOf(link, 'x-deadline-outcome')
  if (!hadAllTime || !isOutcome(outcome)) return false
  return outcome === 'deadline_exceeded' || outcome === 'short_circuited'
}

function headerOf(link: Unknowns, name: string): string | undefined {
  for (const headers of headersOf(link)) {
    const [value] = valuesOf(headers, name)
    if (value !== undefined) return value
  }
  return undefined
}
