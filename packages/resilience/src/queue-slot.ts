import type { Deadline, OperationScope, Outcome, RunningOperation } from '@timebudget/core'
import type { Lane } from './queue-level.ts'
import type { ResolvedRequest } from './queue-options.ts'
import type { Waiter } from './queue-waiter.ts'

/** A slot that somebody holds: whoever asked for it gives it back, or else its deadline does. */
export interface Slot extends OperationScope {
  /** Milliseconds that were waited for it. */
  readonly waited: number
  /** Gives it back, once; with what the work failed with, if it did. */
  release(error?: unknown): void
  [Symbol.dispose](): void
}

/** What a slot is held for. */
export interface Grant {
  readonly request: ResolvedRequest
  /** Where it waited, with the slot time that was booked for it; absent if it did not wait. */
  readonly booked: { readonly lane: Lane<Waiter>; readonly slotTime: number } | undefined
}

/** A slot in use and the operation that uses it. */
export class HeldSlot implements Slot {
  readonly for: Grant
  readonly operation: RunningOperation
  readonly since: number
  readonly waited: number
  readonly #takeBack: (slot: HeldSlot) => void
  #held = true

  constructor(
    takeBack: (slot: HeldSlot) => void,
    held: {
      readonly for: Grant
      readonly operation: RunningOperation
      readonly since: number
      readonly waited: number
    },
  ) {
    this.#takeBack = takeBack
    this.for = held.for
    this.operation = held.operation
    this.since = held.since
    this.waited = held.waited
  }

  get deadline(): Deadline {
    return this.operation.deadline
  }

  get signal(): AbortSignal {
    return this.operation.signal
  }

  get timeout(): number {
    return this.operation.timeout
  }

  get outcome(): Outcome {
    return this.operation.entry.outcome ?? 'ok'
  }

  /** For whoever holds it without a function that ends: the deadline gives it back. */
  giveBackWhenCutOff(): this {
    this.operation.onCutOff(() => this.giveBack())
    return this
  }

  release(error?: unknown): void {
    if (error === undefined) this.operation.end()
    else this.operation.fail(error)
    this.giveBack()
  }

  [Symbol.dispose](): void {
    this.release()
  }

  /** Once, however often it is said. */
  giveBack(): void {
    if (!this.#held) return
    this.#held = false
    this.#takeBack(this)
  }
}
