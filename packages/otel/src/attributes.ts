import type { Attributes, Span } from '@opentelemetry/api'

/** What each attribute of ours on a span is called; docs/telemetry.md says what each of them tells. Whole milliseconds. */
export const spanAttributes = {
  limit: 'deadline.budget.limit_ms',
  remaining: 'deadline.budget.remaining_ms',
  consumed: 'deadline.budget.consumed_ms',
  overrun: 'deadline.budget.overrun_ms',
  granted: 'deadline.budget.granted_ms',
  floor: 'deadline.budget.floor_ms',
  reserve: 'deadline.budget.reserve_ms',
  source: 'deadline.source',
  clamped: 'deadline.clamped',
  outcome: 'deadline.outcome',
  goneBy: 'deadline.gone_by',
  propagated: 'deadline.propagated',
  operation: 'deadline.operation',
  attempt: 'deadline.attempt',
  firstToken: 'deadline.llm.first_token_ms',
  complete: 'deadline.llm.complete',
  estimated: 'deadline.llm.usage.estimated',
  rung: 'deadline.rung',
  answerComplete: 'deadline.answer.complete',
  answerReason: 'deadline.answer.reason',
  cost: 'deadline.cost.amount',
  currency: 'deadline.cost.currency',
  costEstimated: 'deadline.cost.estimated',
  errorType: 'error.type',
} as const

/** Whole milliseconds, as attributes have them; `undefined` for what no attribute can say, such as no limit at all. */
export function wholeMs(value: number | undefined): number | undefined {
  return value === undefined || !Number.isFinite(value) ? undefined : Math.max(0, Math.round(value))
}

/** Puts on a span what is known of it. */
export function describe(span: Span, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined) span.setAttribute(name, value)
}

/** An attribute as the SDK has it, which lets spans be read that are still being written. */
export function attributeOf(span: Span, name: string): unknown {
  if (!('attributes' in span) || typeof span.attributes !== 'object' || span.attributes === null)
    return undefined
  return Reflect.get(span.attributes, name)
}
