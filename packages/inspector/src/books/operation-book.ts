import type { FloorJudged, LedgerEntry, Outcome } from '@timebudget/core'
import { cleanText, shorten } from '../clean-text.ts'
import type { LearnedFloor, OperationTotals } from '../snapshot.ts'
import { LatestDurations } from './latest-durations.ts'
import { OutcomeTally } from './outcome-tally.ts'
import { RecentMap } from './recent-map.ts'
import { roundToTenths, tenths } from './tenths.ts'

const mostOperations = 200

/** What was refused took no time worth counting. */
const neverBegun: ReadonlySet<Outcome> = new Set(['short_circuited', 'shed', 'circuit_open'])

/** One operation over all requests. */
class OperationSum {
  readonly name: string
  readonly outcomes = new OutcomeTally()
  readonly durations = new LatestDurations()
  count = 0
  floor: number | null = null
  learned: LearnedFloor | null = null
  retries = 0
  late = 0

  constructor(name: string) {
    this.name = name
  }
}

/** Every operation over all requests: how often, how long, how it ended. The latest 200 names of ours, and of peers'. */
export class OperationBook {
  readonly #own = new RecentMap<string, OperationSum>(mostOperations)
  // apart, so that a peer that invents names drives out none of ours
  readonly #peers = new RecentMap<string, OperationSum>(mostOperations)

  add(entry: LedgerEntry): void {
    const { outcome, spent, floor } = entry
    if (outcome === undefined) return
    // a peer's operation is known by where it stands: `fetch.retrieve`
    const sum = entry.source === 'peer' ? this.#of(this.#peers, entry.path) : this.#of(this.#own, entry.name)
    sum.count += 1
    sum.outcomes.add(outcome)
    if (spent !== undefined && !neverBegun.has(outcome)) sum.durations.add(spent)
    if (floor > 0) sum.floor = floor
  }

  addJudged({ operation, floor, chance, decision }: FloorJudged): void {
    this.#of(this.#own, operation).learned = { floor: roundToTenths(floor), chance, decision }
  }

  addRetry(operation: string): void {
    this.#of(this.#own, operation).retries += 1
  }

  addLate(name: string): void {
    this.#of(this.#own, name).late += 1
  }

  view(): OperationTotals[] {
    const views = [
      ...this.#own.values().map((sum) => viewOf(sum, { peer: false })),
      ...this.#peers.values().map((sum) => viewOf(sum, { peer: true })),
    ]
    return views.sort((one, other) => other.count - one.count)
  }

  #of(sums: RecentMap<string, OperationSum>, name: string): OperationSum {
    const key = shorten(name)
    return sums.of(key, () => new OperationSum(cleanText(key)))
  }
}

function viewOf(sum: OperationSum, { peer }: { readonly peer: boolean }): OperationTotals {
  const { count, learned, retries, late, durations } = sum
  return {
    name: sum.name,
    peer,
    count,
    p50: tenths(durations.quantile(0.5) ?? undefined),
    p95: tenths(durations.quantile(0.95) ?? undefined),
    floor: tenths(sum.floor ?? undefined),
    learned,
    retries,
    late,
    outcomes: sum.outcomes.view(),
  }
}
