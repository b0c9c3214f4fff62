import type { OperationScope } from '@timebudget/core'
import { Admission } from './queue-admission.ts'
import {
  type DeadlineQueueOptions,
  type QueueRequest,
  type ResolvedQueueOptions,
  resolveQueueOptions,
  resolveRequest,
} from './queue-options.ts'
import type { HeldSlot, Slot } from './queue-slot.ts'

/**
 * Slots in front of something scarce. While one is free, work begins at once. While all are taken, who must finish first
 * goes first, and who can no longer finish in time is refused, on arrival or when it is its turn.
 *
 *     const gpu = new DeadlineQueue({ name: 'gpu', slots: 4, estimate: '6s' })
 *     const text = await gpu.run(({ signal }) => generate(prompt, { signal }))
 */
export class DeadlineQueue {
  readonly #options: ResolvedQueueOptions
  readonly #admission: Admission

  /** @throws TypeError that names an option which is unknown or cannot be read. */
  constructor(options: DeadlineQueueOptions) {
    this.#options = resolveQueueOptions(options)
    this.#admission = new Admission(this.#options)
  }

  /** What the queue is called in events. */
  get name(): string {
    return this.#options.name
  }

  /** How many wait for a slot. */
  get waiting(): number {
    return this.#admission.waiting
  }

  /** How many hold a slot. */
  get running(): number {
    return this.#admission.running
  }

  /** Whether all slots are taken: the pressure under which a learned floor may refuse. */
  get busy(): boolean {
    return this.running >= this.#options.slots
  }

  /** Milliseconds that such a request would wait if it came now. */
  predictedWait(request: QueueRequest = {}): number {
    return this.#admission.predictedWait(resolveRequest(request, this.#options))
  }

  /**
   * Runs the work in a slot, as an operation. Waits for one if need be, no longer than the deadline.
   * @throws OverloadedError if it could not finish in time; what `operation()` throws.
   */
  async run<T>(work: (scope: OperationScope) => Promise<T> | T, request: QueueRequest = {}): Promise<T> {
    const slot = await this.#enter(request)
    try {
      return await slot.operation.run(work)
    } finally {
      slot.giveBack()
    }
  }

  /**
   * A slot for work that ends elsewhere, such as a stream's. Give it back by `release()` or `using`; its deadline does if
   * nobody else does.
   * @throws OverloadedError if it could not finish in time; what `operation()` throws before it begins.
   */
  async acquire(request: QueueRequest = {}): Promise<Slot> {
    const slot = await this.#enter(request)
    slot.giveBackWhenCutOff()
    const reason = slot.deadline.reason
    if (reason === undefined) return slot
    slot.release()
    throw reason
  }

  #enter(request: QueueRequest): HeldSlot | Promise<HeldSlot> {
    return this.#admission.enter(resolveRequest(request, this.#options))
  }
}
