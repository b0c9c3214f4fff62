import {
  type FinishedWork,
  type FloorJudged,
  floorJudged,
  floorQuestionable,
  type FloorSource,
} from '@timebudget/core'
import { FloorDoubts } from './floor-doubts.ts'
import { lessons } from './floor-lessons.ts'
import { type LearnedFloorOptions, resolveFloorOptions, type ResolvedFloorOptions } from './floor-options.ts'
import { CutShare } from './floor-pressure.ts'
import { FloorSharing } from './floor-sharing.ts'
import { type FloorTally, tallyOf } from './floor-tally.ts'
import { Latency } from './latency.ts'
import { textOf } from './option-values.ts'

/** A floor that an operation learns from how long it really takes. */
export class LearnedFloor implements FloorSource {
  readonly operation: string
  /** What it has learned. */
  readonly latency: Latency
  readonly #options: ResolvedFloorOptions
  readonly #tally: FloorTally
  readonly #cuts: CutShare
  readonly #doubts: FloorDoubts
  readonly #sharing: FloorSharing | undefined
  #pressureFailed = false

  constructor(operation: string, options: ResolvedFloorOptions) {
    const { window, minSamples, clock, cap, store, random } = options
    this.operation = operation
    this.latency = new Latency({ window, minSamples, clock })
    this.#options = options
    this.#tally = tallyOf(operation, { window: cap.window, clock })
    this.#cuts = new CutShare(options)
    this.#doubts = new FloorDoubts(operation, options)
    const { latency } = this
    this.#sharing =
      store === undefined ? undefined : new FloorSharing(operation, { store, latency, window, clock, random })
  }

  /**
   * Milliseconds that this start needs, with so many `remaining`: 0 lets it begin. Without an argument, what has been
   * learned, for display; 0 as long as that is nothing.
   */
  current(remaining?: number): number {
    this.#sharing?.wake()
    const floor = this.latency.quantile(this.#options.share) ?? 0
    if (remaining === undefined) return floor
    const now = this.#options.clock.now()
    this.#tally.start(now)
    // a value of the floor's own bin is no less than the floor
    const chance = remaining < floor ? (this.latency.chance(remaining) ?? 1) : 1
    const below = chance < this.#options.share
    this.#question({ now, remaining, floor, below })
    if (!below) return this.#options.enforce && remaining >= floor ? floor : 0
    const decision = this.#decide(now)
    floorJudged.publish(() => ({ operation: this.operation, remaining, floor, chance, decision }))
    return decision === 'refused' ? floor : 0
  }

  /** Learns from how a call that began has ended. */
  record({ spent, outcome }: FinishedWork): void {
    const lesson = lessons[outcome]
    if (lesson === 'nothing') return
    this.latency.record(spent, { cut: lesson !== 'done' })
    if (lesson === 'done') this.#cuts.noteDone(this.#options.clock.now())
    if (lesson === 'out_of_time') this.#cuts.noteCut(this.#options.clock.now())
    this.#sharing?.wake()
  }

  #decide(now: number): FloorJudged['decision'] {
    const { enforce, explore, random, cap } = this.#options
    if (!enforce) return 'observed'
    if (!this.#pressed(now)) return 'no_pressure'
    if (random() < explore) return 'explored'
    if (!this.#tally.mayRefuse(now, cap.share)) return 'capped'
    this.#tally.refuse(now)
    return 'refused'
  }

  #pressed(now: number): boolean {
    const { pressure } = this.#options
    if (pressure === undefined) return this.#cuts.pressed(now)
    try {
      return pressure()
    } catch (error) {
      if (!this.#pressureFailed)
        process.emitWarning(`the pressure of ${this.operation} failed: ${String(error)}`, 'TimeBudgetWarning')
      this.#pressureFailed = true
      return false
    }
  }

  #question(start: { now: number; remaining: number; floor: number; below: boolean }): void {
    if (!floorQuestionable.observed) return
    this.#doubts.note(start)
    const doubt = this.#doubts.look(start.now, { latency: this.latency, floor: start.floor })
    if (doubt !== undefined && this.#tally.mayWarn(start.now)) floorQuestionable.publish(() => doubt)
  }
}

/**
 * A floor for `operation()` and for clients that is learned from how long the operation really takes: under pressure it
 * refuses what has hardly a chance of finishing within what is left.
 *
 *     const floor = learnedFloor('retrieve', { mode: 'enforce' })
 *     await operation('retrieve', { floor }, ({ signal }) => search(query, { signal }))
 *
 * @throws TypeError that names an option which is unknown or cannot be read.
 */
export function learnedFloor(operation: string, options?: LearnedFloorOptions): LearnedFloor {
  return new LearnedFloor(textOf(operation, 'operation'), resolveFloorOptions(options))
}
