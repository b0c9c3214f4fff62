import type {
  Deadline,
  LedgerEntry,
  Ledger,
  Outcome,
  RequestFinished,
  RequestStarted,
} from '@timebudget/core'
import { deadlineOf } from '@timebudget/core/server'
import { cleanText } from '../clean-text.ts'
import type { BarView, EntryView, RequestView, WholeRequest } from '../snapshot.ts'
import { mostEntries, viewEntries } from './entry-views.ts'
import { roundToTenths, tenths } from './tenths.ts'

const longestPath = 200
/** What is drawn of a request in the list: more would be dust. */
const mostBars = 24

/** What is the same from a request's beginning to its end. */
type Beginning = Pick<
  RequestView,
  'id' | 'method' | 'path' | 'startedAt' | 'startedEpoch' | 'clamped' | 'attempt'
>

type End = Pick<RequestView, 'outcome' | 'elapsed' | 'overrun' | 'status' | 'goneBy'>

type CodeOf = (entry: LedgerEntry) => string | undefined

const running: End = { outcome: null, elapsed: null, overrun: null, status: null, goneBy: null }

/** A request as it is kept: while it runs by its ledger, afterwards by a copy that holds nothing of the request alive. */
export class RequestRecord {
  readonly beginning: Beginning
  /** The book's version at which it last changed. */
  changed = 0
  #live: { readonly entry: Deadline; readonly request: object } | undefined
  #source: string
  #seen = 0
  #budget: Pick<RequestView, 'budget' | 'deadlineAt'>
  #end: End = running
  #entries: readonly EntryView[] = []
  #bars: readonly BarView[] = []
  #dropped = 0

  constructor(
    { deadline, source, clamped, request }: RequestStarted,
    place: { readonly id: number; readonly now: number; readonly epoch: number },
  ) {
    const elapsed = deadline.elapsed()
    this.beginning = {
      id: place.id,
      ...describeRequest(request),
      startedAt: roundToTenths(place.now - elapsed),
      startedEpoch: Math.round(place.epoch - elapsed),
      clamped,
      attempt: deadline.attempt,
    }
    this.#source = source
    this.#live = { entry: deadline, request }
    this.#budget = budgetOf(deadline, deadline)
  }

  get finished(): boolean {
    return this.#end !== running
  }

  /** Whether operations have begun since it was last asked: their starts cost no event. */
  takeGrowth(): boolean {
    if (this.#live === undefined) return false
    const { length } = this.#live.entry.ledger.entries
    const hasGrown = length !== this.#seen
    this.#seen = length
    return hasGrown
  }

  /** Returns how it ended: one that was answered in time, but by a fallback, was `degraded`. */
  finish(
    { deadline, source, elapsed, budget, outcome, overrun, status, goneBy }: RequestFinished,
    codeOf: CodeOf,
  ): Outcome {
    const ended = outcome === 'ok' && isDegraded(deadline.ledger) ? 'degraded' : outcome
    this.#source = source
    this.#budget = { budget: tenths(deadline.budget), deadlineAt: tenths(budget) }
    this.#end = {
      outcome: ended,
      elapsed: roundToTenths(elapsed),
      overrun: roundToTenths(overrun),
      status: status ?? null,
      goneBy: goneBy === undefined ? null : cleanText(goneBy),
    }
    this.#live = undefined
    this.copy(deadline.ledger, codeOf)
    return ended
  }

  /** Takes over what the ledger of a request that has ended says by now. */
  copy(ledger: Ledger, codeOf: CodeOf): void {
    this.#entries = viewEntries(ledger.entries, codeOf)
    this.#bars = barsOf(this.#entries)
    this.#dropped = droppedOf(ledger)
  }

  view(codeOf: CodeOf): RequestView {
    const { beginning } = this
    const source = this.#source
    if (this.#live === undefined)
      return { ...beginning, ...this.#budget, ...this.#end, source, bars: this.#bars }
    const { entry, request } = this.#live
    const budget = budgetOf(entry, deadlineOf(request as Parameters<typeof deadlineOf>[0]) ?? entry)
    // hundreds of these are asked for at once: no more of the tree is built than is drawn
    const bars = barsOf(viewEntries(entry.ledger.entries.slice(0, mostBars), codeOf))
    return { ...beginning, ...budget, ...this.#end, source, bars }
  }

  whole(codeOf: CodeOf): WholeRequest {
    const ledger = this.#live?.entry.ledger
    return {
      ...this.view(codeOf),
      changed: this.changed,
      entries: ledger === undefined ? this.#entries : viewEntries(ledger.entries, codeOf),
      dropped: ledger === undefined ? this.#dropped : droppedOf(ledger),
    }
  }
}

function barsOf(entries: readonly EntryView[]): BarView[] {
  return entries
    .slice(0, mostBars)
    .map(({ start, spent, depth, outcome }) => [start, spent, Math.min(depth, 2), outcome])
}

/** Whether a part of it, here or at a peer's, was answered by something else than what should have answered. */
function isDegraded({ entries }: Ledger): boolean {
  return entries.some(({ outcome }) => outcome === 'degraded')
}

function droppedOf({ dropped, entries }: Ledger): number {
  return dropped + Math.max(0, entries.length - mostEntries)
}

/** A route's own deadline began later than the request: on the request's scale it ends that much later too. */
function budgetOf(entry: Deadline, ruling: Deadline): Pick<RequestView, 'budget' | 'deadlineAt'> {
  const later = entry === ruling ? 0 : entry.elapsed() - ruling.elapsed()
  return { budget: tenths(ruling.budget), deadlineAt: tenths(later + ruling.budget) }
}

/** Method and path of a request of Node's, or of a call of another protocol; never its query. */
function describeRequest(request: object): Pick<RequestView, 'method' | 'path'> {
  const { method, originalUrl, url, path } = request as Readonly<Record<string, unknown>>
  const whole = [originalUrl, url, path].find((each): each is string => typeof each === 'string') ?? ''
  const [pathname = ''] = whole.split(/[?#]/, 1)
  return {
    method: cleanText(typeof method === 'string' ? method : 'CALL', 16),
    path: cleanText(pathname, longestPath),
  }
}
