import type { Outcome } from '@timebudget/core'

/** What an outcome means to somebody who looks for trouble: it decides colour, sign and pattern. */
export type Verdict = 'running' | 'ok' | 'degraded' | 'late' | 'failed' | 'refused' | 'left'

const verdicts: Readonly<Record<Outcome, Verdict>> = {
  ok: 'ok',
  degraded: 'degraded',
  error: 'failed',
  upstream_error: 'failed',
  deadline_exceeded: 'late',
  operation_timeout: 'late',
  connect_timeout: 'late',
  first_token_timeout: 'late',
  stream_stalled: 'late',
  total_timeout: 'late',
  short_circuited: 'refused',
  shed: 'refused',
  circuit_open: 'refused',
  client_closed: 'left',
  cancelled: 'left',
  shutdown: 'left',
}

export function verdictOf(outcome: Outcome | null): Verdict {
  return outcome === null ? 'running' : verdicts[outcome]
}

/** `deadline exceeded`, `running`. */
export function nameOf(outcome: Outcome | null): string {
  return outcome === null ? 'running' : outcome.replaceAll('_', ' ')
}

/** All of them, in the order of the closed list. */
export const allOutcomes: readonly Outcome[] = Object.keys(verdicts) as Outcome[]
