import { type Deadline, type RunningOperation, startOperation } from '@timebudget/core'
import type { Rung } from './rungs/rung.ts'

/** What a rung's turn is bounded by, in milliseconds. */
export interface TurnLimits {
  readonly floor: Rung<never>['floor']
  /** Kept from it for the rungs after it and for sending the answer. */
  readonly kept: number
  /** Of that, what is kept from it even once it has shown something, since no other rung has a turn then. */
  readonly keptAlways: number
}

/**
 * A rung's turn: its operation, which ends when the time is up that the rungs after it leave, or, once it has shown
 * something of its answer, when all time is up.
 */
export class Turn {
  readonly operation: RunningOperation
  /** Milliseconds at the operation's end that are not the rung's while it has shown nothing. */
  readonly reserve: number
  readonly #unshown: Deadline | undefined

  /** @throws BudgetTooSmallError if less than its floor is left; the deadline's reason if that has ended. */
  constructor(
    rung: Pick<Rung<never>, 'name' | 'timeout'>,
    { floor, kept, keptAlways }: TurnLimits,
    { deadline }: RunningOperation,
  ) {
    const left = deadline.remaining() - kept
    this.operation = startOperation(rung.name, {
      deadline,
      timeout: rung.timeout,
      floor,
      reserve: keptAlways,
    })
    this.reserve = kept - keptAlways
    if (this.reserve <= 0 || left === Infinity) return
    const unshown = deadline.child({ timeout: Math.max(0, left), label: rung.name })
    this.#unshown = unshown
    const end = (): void => this.operation.deadline.cancel(unshown.reason)
    if (unshown.signal.aborted) end()
    else unshown.signal.addEventListener('abort', end, { once: true })
  }

  /** The user has seen a piece of its answer: no other rung will have a turn. */
  shown(): void {
    this.#unshown?.settle()
  }

  /** Whether its time was up before its answer was there. */
  get wasCutOff(): boolean {
    const outcome = this.operation.deadline.reason?.outcome
    return outcome === 'operation_timeout' || outcome === 'deadline_exceeded'
  }

  /** The rung has nothing more to say. */
  close(): void {
    this.#unshown?.settle()
    this.operation.deadline.cancel()
  }
}
