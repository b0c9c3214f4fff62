// How a call ended for whoever made it, in one word and what belongs to it.
import { findTimeBudgetError } from '@timebudget/core'

/** A whole answer, as the caller saw it. */
export function viewOfAnswer({ status, outcome, type, text }) {
  if (!type.startsWith('text/event-stream') || status !== 200) return { view: 'answered', status, outcome }
  const last = /(?:^|\n)event: (\w+)\ndata: (.*)\n\n$/.exec(text)
  if (last?.[1] === 'done') return { view: 'answered', status, outcome }
  if (last?.[1] === 'error') return { view: 'cut', outcome: JSON.parse(last[2]).outcome }
  return { view: 'unfinished', text: text.slice(-80) }
}

/** A failure, as the caller saw it. */
export function viewOfFailure(error, { left = false } = {}) {
  const ours = findTimeBudgetError(error)
  if (ours?.code === 'BUDGET_TOO_SMALL') return { view: 'refused' }
  if (ours !== undefined && ours.code !== 'UPSTREAM_ERROR') return { view: 'gone', outcome: ours.outcome }
  if (left) return { view: 'gone', outcome: 'client_closed' }
  const codes = codesBehind(error)
  return { view: codes.includes('ECONNREFUSED') ? 'unreachable' : 'broken', codes }
}

function codesBehind(error) {
  const codes = []
  for (
    let cause = error, depth = 0;
    cause !== undefined && cause !== null && depth < 8;
    cause = cause.cause, depth += 1
  ) {
    codes.push(String(cause.code ?? cause.message ?? cause))
  }
  return codes
}
