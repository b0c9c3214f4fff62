import type { Clock } from '@timebudget/core'
import { type Job, slots } from './workload.ts'

/** Takes that much virtual time; rejects with the signal's reason as soon as it aborts. Milliseconds. */
export function takeTime(clock: Clock, duration: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason)
      return
    }
    const timer = clock.wakeAfter(duration, () => {
      signal?.removeEventListener('abort', leave)
      resolve()
    })
    function leave(): void {
      timer.cancel()
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', leave, { once: true })
  })
}

/** The model, which answers as many at once as it has slots, and keeps the books of what each job cost it. */
export class Model {
  readonly #clock: Clock
  readonly #slotTime = new Map<number, number>()
  #running = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Milliseconds that slots have spent on the job. */
  slotTime(job: Job): number {
    return this.#slotTime.get(job.index) ?? 0
  }

  /** Writes the answer, unless the signal aborts. Whoever calls has seen to it that a slot is free. */
  async generate(job: Job, signal?: AbortSignal): Promise<void> {
    if (this.#running === slots) throw new Error(`all ${slots} slots of the model are taken`)
    this.#running += 1
    const begun = this.#clock.now()
    try {
      await takeTime(this.#clock, job.generate, signal)
    } finally {
      this.#running -= 1
      this.#slotTime.set(job.index, this.slotTime(job) + this.#clock.now() - begun)
    }
  }
}
