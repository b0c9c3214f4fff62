import type { Deadline, OperationScope, Outcome, RunningOperation } from '@timebudget/core'

/** A slot that somebody holds: whoever asked for it gives it back, or else its deadline does. */
export interface Slot extends OperationScope {
  /** Milliseconds that were waited for it. */
  readonly waited: number
  /** Gives it back, once; with what the work failed with, if it did. */
  release(error?: unknown): void
  [Symbol.dispose](): void
}

/** A slot in use and the operation that uses it. */
export class HeldSlot<For> implements Slot {
  readonly for: For
  readonly operation: RunningOperation
  readonly since: number
  readonly waited: number
  readonly #takeBack: (slot: HeldSlot<For>) => void
  #held = true

  constructor(
    takeBack: (slot: HeldSlot<For>) => void,
    held: {
      readonly for: For
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
    if (!this.#held) return
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
