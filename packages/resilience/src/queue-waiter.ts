import type { RunningOperation } from '@timebudget/core'
import type { Expectation } from './queue-expectation.ts'
import type { Lane } from './queue-level.ts'
import { Place } from './queue-line.ts'
import type { ResolvedRequest } from './queue-options.ts'
import type { HeldSlot } from './queue-slot.ts'

/** What is known of somebody who has come while all slots are taken. Milliseconds. */
export interface Arrival {
  readonly request: ResolvedRequest
  readonly lane: Lane<Waiter>
  readonly expectation: Expectation | undefined
  readonly rank: number
  readonly arrival: number
  readonly work: number
  readonly since: number
  /** What was left. */
  readonly budget: number
}

/** Somebody who waits for a slot, under an operation that ends with the deadline or with whoever asked. */
export class Waiter extends Place<Waiter> {
  readonly request: ResolvedRequest
  readonly lane: Lane<Waiter>
  readonly expectation: Expectation | undefined
  readonly since: number
  readonly budget: number
  readonly predicted: number
  readonly operation: RunningOperation
  readonly #resolve: (slot: HeldSlot) => void
  readonly #reject: (reason: unknown) => void
  readonly slot: Promise<HeldSlot>

  constructor(
    arrival: Arrival,
    { operation, predicted }: { operation: RunningOperation; predicted: number },
  ) {
    super(arrival)
    this.request = arrival.request
    this.lane = arrival.lane
    this.expectation = arrival.expectation
    this.since = arrival.since
    this.budget = arrival.budget
    this.operation = operation
    this.predicted = predicted
    let resolve!: (slot: HeldSlot) => void
    let reject!: (reason: unknown) => void
    this.slot = new Promise((keep, fail) => {
      resolve = keep
      reject = fail
    })
    this.#resolve = resolve
    this.#reject = reject
  }

  get left(): number {
    return this.operation.deadline.remaining()
  }

  grant(slot: HeldSlot): void {
    this.#resolve(slot)
  }

  refuse(reason: unknown): void {
    this.#reject(reason)
  }
}
