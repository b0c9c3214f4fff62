import type { RequestView } from '../snapshot.ts'
import { verdictOf } from './outcomes.ts'

/** Which requests are listed. */
export interface Filter {
  /** In method or path, whatever the case; several words must all be there. */
  readonly text: string
  /** An outcome, `trouble` for all that is neither running nor ok, or `''` for any. */
  readonly outcome: string
  /** Milliseconds that it took, or has taken so far. */
  readonly slowerThan: number
  readonly inFlight: boolean
}

export const everything: Filter = { text: '', outcome: '', slowerThan: 0, inFlight: false }

/** How long a request took, or has taken by `now`. */
export function elapsedOf({ elapsed, startedAt }: RequestView, now: number): number {
  return elapsed ?? Math.max(0, now - startedAt)
}

export function matches(request: RequestView, filter: Filter, now: number): boolean {
  if (filter.inFlight && request.outcome !== null) return false
  if (!hasOutcome(request, filter.outcome)) return false
  if (filter.slowerThan > 0 && elapsedOf(request, now) < filter.slowerThan) return false
  const text = `${request.method} ${request.path}`.toLowerCase()
  return filter.text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

function hasOutcome({ outcome }: RequestView, wanted: string): boolean {
  if (wanted === '') return true
  if (wanted === 'trouble') return outcome !== null && verdictOf(outcome) !== 'ok'
  return outcome === wanted
}
