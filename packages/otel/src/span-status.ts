import { type Span, SpanStatusCode } from '@opentelemetry/api'
import { findTimeBudgetError, type Outcome } from '@timebudget/core'
import { spanAttributes } from './attributes.ts'
import { guarded } from './guarded.ts'

/** What came to its end, for whoever decides whether it was an error. */
export interface EndedWork {
  readonly kind: 'request' | 'operation' | 'llm_call'
  /** The operation's name; of a request `undefined`. */
  readonly operation: string | undefined
  readonly outcome: Outcome
  /** Whether an answer had begun by then: a stream that was cut off. Known of requests and of calls to models. */
  readonly begun: boolean
}

/** Which ends leave a span's status unset although they are no success: outcomes, or a function of the end. */
export type UnsetRule = readonly Outcome[] | ((ended: EndedWork) => boolean)

/** @throws TypeError if it is neither a list nor a function. */
export function resolveUnset(rule: UnsetRule = []): (ended: EndedWork) => boolean {
  if (typeof rule === 'function') return (ended) => guarded('the function unset', () => rule(ended), false)
  if (!Array.isArray(rule)) throw new TypeError('unset: expected a list of outcomes or a function')
  return ({ outcome }) => rule.includes(outcome)
}

/** Whether a user, or our own program, had no more need of it: that is nobody's failure. */
export function isAbandoned(outcome: Outcome): boolean {
  return outcome === 'client_closed' || outcome === 'cancelled'
}

/** Whether it ended well, or as somebody wanted it to. */
export function isFailure(outcome: Outcome): boolean {
  return outcome !== 'ok' && outcome !== 'degraded' && !isAbandoned(outcome)
}

/** What a failure is called where its error is not at hand, or none of ours. */
const codes: Readonly<Partial<Record<Outcome, string>>> = {
  short_circuited: 'BUDGET_TOO_SMALL',
  shed: 'OVERLOADED',
  circuit_open: 'CIRCUIT_OPEN',
  shutdown: 'SHUTTING_DOWN',
}

/** The `error.type` of a failure: always a string, our code where the error is one of ours. */
export function errorTypeOf(outcome: Outcome, error?: unknown): string {
  const ours = findTimeBudgetError(error)
  if (ours !== undefined) return ours.code
  if (outcome !== 'error') return codes[outcome] ?? outcome.toUpperCase()
  if (!(error instanceof Error)) return '_OTHER'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/** Says on a span how it ended. Must come after whatever an instrumentation says of it. */
export function stampStatus(span: Span, status: 'error' | 'unset', message: string | undefined): void {
  if (status === 'unset') clearStatus(span)
  else span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) })
}

/** For instrumentations take an abort for an error. The API cannot take a status back: only the SDK's own field can. */
export function clearStatus(span: Span): void {
  if (!('status' in span) || typeof span.status !== 'object' || span.status === null) return
  if (Reflect.get(span.status, 'code') !== SpanStatusCode.ERROR) return
  span.status = { code: SpanStatusCode.UNSET }
}

/** Puts the outcome on a span, and its status: an error with its type, or none where nobody has failed. */
export function stampOutcome(
  span: Span,
  ended: EndedWork,
  { error, isUnset }: { readonly error: unknown; readonly isUnset: (ended: EndedWork) => boolean },
): void {
  const { outcome } = ended
  span.setAttribute(spanAttributes.outcome, outcome)
  if (isAbandoned(outcome)) return clearStatus(span)
  if (!isFailure(outcome)) return
  span.setAttribute(spanAttributes.errorType, errorTypeOf(outcome, error))
  const message = error instanceof Error ? error.message : undefined
  stampStatus(span, isUnset(ended) ? 'unset' : 'error', message)
}
