import type { Clock, Outcome } from '@timebudget/core'
import { Latency } from './latency.ts'
import { LatencyBook } from './latency-book.ts'
import { type Expectation, LearnedExpectations } from './queue-expectation.ts'
import type { ResolvedQueueOptions, ResolvedRequest } from './queue-options.ts'

/** Ends that say only that the work takes longer than that. */
const cutOff: ReadonlySet<Outcome> = new Set<Outcome>([
  'deadline_exceeded',
  'operation_timeout',
  'client_closed',
  'cancelled',
  'shutdown',
  'total_timeout',
])

// How far estimates are off changes slowly, and in front of one GPU few calls come to an end in a minute.
const errorWindow = '10m'

/** What a queue expects of the work that is asked for: as told with the request, else as told or learned in general. */
export class Estimates {
  readonly #source: ResolvedQueueOptions['estimate']
  readonly #thousandths: Latency
  readonly #learned = new LearnedExpectations()
  #anything: boolean

  constructor(source: ResolvedQueueOptions['estimate'], clock: Clock) {
    this.#source = source
    this.#thousandths = new Latency({ clock, window: errorWindow })
    this.#anything = source !== undefined
  }

  /** Whether anybody has ever told how long anything takes, or will learn it. */
  get any(): boolean {
    return this.#anything
  }

  /** `undefined` if nothing is known. */
  of(request: ResolvedRequest, now: number): Expectation | undefined {
    if (request.estimate !== undefined) {
      this.#anything = true
      return this.#learned.corrected(request.estimate, this.#thousandths, now)
    }
    if (typeof this.#source === 'number') return this.#learned.corrected(this.#source, this.#thousandths, now)
    const latency = this.#latencyOf(request)
    return latency === undefined ? undefined : this.#learned.of(latency, now)
  }

  /** Learns from work that has ended; what failed by itself tells nothing of what success takes. */
  learn(
    request: ResolvedRequest,
    { spent, outcome }: { readonly spent: number; readonly outcome: Outcome },
  ): void {
    const cut = cutOff.has(outcome)
    if (!cut && outcome !== 'ok') return
    this.#latencyOf(request)?.record(spent, { cut })
    const given = request.estimate ?? (typeof this.#source === 'number' ? this.#source : 0)
    if (given > 0) this.#thousandths.record((spent / given) * 1000, { cut })
  }

  #latencyOf(request: ResolvedRequest): Latency | undefined {
    if (this.#source instanceof Latency) return this.#source
    return this.#source instanceof LatencyBook ? this.#source.of(request.key) : undefined
  }
}
