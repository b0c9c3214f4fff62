import { type Deadline, parseDuration } from '@timebudget/core'
import type { Rung } from './rungs/rung.ts'
import { warnOfTooSmallBudget } from './too-small-budget.ts'
import type { TurnLimits } from './turn.ts'

/**
 * Milliseconds that a timer may be late by: beside five busy processes on two cores, 1 timer in 100 was late by 25 ms in an
 * idle event loop, and by 50 to 80 ms in one that was blocked for 5 to 50 ms at a time.
 */
export const timerLateness = 100

/** What a rung is kept that says nothing of it, in milliseconds, if there is as much for each. */
const usualReserve = 1_000

/** How things stand as a rung's turn comes. */
interface Moment {
  /** Milliseconds. */
  readonly remaining: number
  /** Whether a rung before it was cut off, so that what was kept for this one has been shortened by a late timer. */
  readonly isLate: boolean
  /** Whether the user sees each piece of the answer as it comes. */
  readonly shows: boolean
}

/** What the rungs of one ladder keep from those before them. */
export class Reserves<Input> {
  readonly #rungs: readonly Rung<Input>[]
  readonly #options: { readonly reserve: number; readonly operation: string }
  readonly #firstModel: Rung<Input> | undefined
  readonly #warnedOf = new Set<Rung<Input>>()

  constructor(
    rungs: readonly Rung<Input>[],
    options: { readonly reserve: number; readonly operation: string },
  ) {
    this.#rungs = rungs
    this.#options = options
    this.#firstModel = rungs.find(({ asksModel }) => asksModel)
  }

  /** What the turn of a rung is bounded by that comes now. */
  limitsOf(index: number, { remaining, isLate, shows }: Moment): TurnLimits {
    const rung = this.#rungs[index]
    const kept = this.#keptFrom(index, remaining)
    const fixed = fixedFloorOf(rung)
    const missing = fixed + kept - remaining
    const wasKept = isLate && (rung?.reserve ?? 0) >= fixed
    // the clock goes on until its operation begins
    const isForgiven = wasKept && missing > -1 && missing <= timerLateness
    const floor = isForgiven ? Math.max(0, fixed - timerLateness) : rung?.floor
    // text that was shown is not begun again: no rung after it will need the time
    const mayGoOn = shows && (missing <= 0 || isForgiven)
    return { floor, kept, keptAlways: mayGoOn ? Math.min(kept, this.#options.reserve) : kept }
  }

  /** Warns, once for each rung, if it would have no turn either with all of its request's budget. */
  warnIfNeverEnough(index: number, deadline: Deadline): void {
    const rung = this.#rungs[index]
    if (rung === undefined || this.#warnedOf.has(rung)) return
    const [floor, kept] = [fixedFloorOf(rung), this.#saidAfter(index)]
    if (
      floor > 0 &&
      warnOfTooSmallBudget(deadline, { ladder: this.#options.operation, rung: rung.name, floor, kept })
    )
      this.#warnedOf.add(rung)
  }

  #keptFrom(index: number, remaining: number): number {
    const kept = this.#keptAfter(index, remaining)
    const rung = this.#rungs[index]
    const isLastResort =
      rung?.answersAtOnce === true || (index === this.#rungs.length - 1 && !rung?.asksModel)
    // what the others keep must not keep the last resort from its turn
    return isLastResort ? Math.min(kept, Math.max(0, remaining - (rung?.reserve ?? 0))) : kept
  }

  /** Rungs that say nothing of it are kept an equal share at the most, and nothing that this one's floor needs. */
  #keptAfter(index: number, remaining: number): number {
    const said = this.#saidAfter(index)
    const silent = this.#after(index).filter(
      (rung) => rung.reserve === undefined && rung !== this.#firstModel,
    ).length
    if (silent === 0) return said
    const free = Math.max(0, remaining - said)
    const share = Math.min(free / (silent + 1), (free - fixedFloorOf(this.#rungs[index])) / silent)
    return said + silent * Math.max(0, Math.min(usualReserve, share))
  }

  #saidAfter(index: number): number {
    return this.#after(index).reduce((sum, { reserve = 0 }) => sum + reserve, this.#options.reserve)
  }

  #after(index: number): readonly Rung<Input>[] {
    return this.#rungs.slice(index + 1)
  }
}

/** Milliseconds; 0 for a learned floor, which is asked where the rung's operation begins, and only there. */
function fixedFloorOf(rung: Pick<Rung<never>, 'floor'> | undefined): number {
  const floor = rung?.floor
  return floor === undefined || typeof floor === 'object' ? 0 : parseDuration(floor, 'floor')
}
