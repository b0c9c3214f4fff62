import { fairShares } from './fair-share.ts'
import type { Ending } from './run.ts'
import { slots, workClasses } from './workload.ts'

/** How a class of work fared. */
export interface ClassMeasures {
  readonly name: string
  /** Of its requests, 0 to 1. */
  readonly inTime: number
  /**
   * Slot time that went into its answers in time, over its fair share of all slot time: half of it with two classes,
   * or all that its requests need if that is less. Requests that no slot could answer in time do not count as need.
   */
  readonly usefulOfFairShare: number
  /** All the slot time that it got, over the same. */
  readonly ofFairShare: number
}

/** What came of one run. */
export interface Measures {
  /** Requests that arrived in the time that counts. */
  readonly requests: number
  /** Answers in time, per second. */
  readonly goodput: number
  /** Of the requests, 0 to 1. */
  readonly inTime: number
  /** Slot time spent on what nobody got in time, of all that was spent, 0 to 1. */
  readonly wastedSlotTime: number
  /** How long users waited to hear nothing in time; absent if none did. Milliseconds. */
  readonly timeToFailure: { readonly p50: number; readonly p99: number } | undefined
  readonly classes: readonly ClassMeasures[]
}

/** Measures the requests that arrived from `from` to `to`, in virtual milliseconds: no run begins as it goes on. */
export function measure(
  endings: readonly Ending[],
  { from, to, budget }: { readonly from: number; readonly to: number; readonly budget: number },
): Measures {
  const counted = endings.filter(({ job }) => job.arrival >= from && job.arrival < to)
  const good = counted.filter(({ inTime }) => inTime)
  const slotTime = slotTimeOf(counted)
  return {
    requests: counted.length,
    goodput: good.length / ((to - from) / 1000),
    inTime: ratio(good.length, counted.length),
    wastedSlotTime: ratio(slotTime - slotTimeOf(good), slotTime),
    timeToFailure: timeToFailure(counted),
    classes: measureClasses(counted, { capacity: slots * (to - from), budget }),
  }
}

function measureClasses(
  counted: readonly Ending[],
  { capacity, budget }: { readonly capacity: number; readonly budget: number },
): readonly ClassMeasures[] {
  const byClass = workClasses.map(({ name }) => counted.filter(({ job }) => job.class === name))
  const demands = byClass.map((endings) =>
    total(endings, ({ job }) => (job.retrieve + job.rerank + job.generate <= budget ? job.generate : 0)),
  )
  const fair = fairShares(capacity, demands)
  return workClasses.map(({ name }, index) => {
    const endings = byClass[index] ?? []
    const good = endings.filter(({ inTime }) => inTime)
    const share = fair[index] ?? 0
    return {
      name,
      inTime: ratio(good.length, endings.length),
      usefulOfFairShare: ratio(slotTimeOf(good), share),
      ofFairShare: ratio(slotTimeOf(endings), share),
    }
  })
}

function timeToFailure(counted: readonly Ending[]): Measures['timeToFailure'] {
  const waits = counted.filter(({ inTime }) => !inTime).map(({ elapsed }) => elapsed)
  waits.sort((a, b) => a - b)
  const p50 = waits[Math.ceil(waits.length * 0.5) - 1]
  const p99 = waits[Math.ceil(waits.length * 0.99) - 1]
  return p50 === undefined || p99 === undefined ? undefined : { p50, p99 }
}

function slotTimeOf(endings: readonly Ending[]): number {
  return total(endings, ({ slotTime }) => slotTime)
}

function total(endings: readonly Ending[], of: (ending: Ending) => number): number {
  return endings.reduce((sum, ending) => sum + of(ending), 0)
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}
