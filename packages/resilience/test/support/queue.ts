import { Deadline, type QueueJudged, queueJudged } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'
import { onTestFinished } from 'vitest'
import { DeadlineQueue, type DeadlineQueueOptions, type QueueRequest, type Slot } from '../../src/index.ts'

/** How somebody who came to a queue has fared so far. */
export interface Caller {
  state: 'waiting' | 'holding' | 'refused'
  slot: Slot | undefined
  error: unknown
  /** On the clock, when it got its slot or was refused. */
  at: number
}

interface SceneOptions extends Omit<DeadlineQueueOptions, 'clock'> {
  readonly clock?: ManualClock
}

/** Lets all promises come to rest. */
export function atRest(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A queue on a clock turned by hand, and those who come to it. */
export class Scene {
  readonly clock: ManualClock
  readonly queue: DeadlineQueue
  readonly events: QueueJudged[] = []

  constructor({ clock = new ManualClock(), ...options }: SceneOptions) {
    this.clock = clock
    this.queue = new DeadlineQueue({ ...options, clock })
    const unsubscribe = queueJudged.subscribe((event) => {
      if (event.queue === this.queue.name) this.events.push(event)
    })
    onTestFinished(unsubscribe)
  }

  deadline(budget: number): Deadline {
    return Deadline.after(budget, { clock: this.clock })
  }

  /** Somebody asks for a slot, under a deadline if it has a budget. */
  come({ budget, ...request }: QueueRequest & { readonly budget?: number } = {}): Caller {
    const caller: Caller = { state: 'waiting', slot: undefined, error: undefined, at: this.clock.now() }
    const deadline = budget === undefined ? request.deadline : this.deadline(budget)
    this.queue.acquire({ ...request, deadline }).then(
      (slot) => Object.assign(caller, { state: 'holding', slot, at: this.clock.now() }),
      (error: unknown) => Object.assign(caller, { state: 'refused', error, at: this.clock.now() }),
    )
    return caller
  }

  /** Takes all slots for callers without a deadline. */
  async fill(request: QueueRequest = {}): Promise<Caller[]> {
    const holders: Caller[] = []
    while (!this.queue.busy) holders.push(this.come(request))
    await atRest()
    return holders
  }

  /** Turns the clock, in steps after each of which all promises come to rest. */
  async turn(milliseconds: number, step = milliseconds): Promise<void> {
    for (let left = milliseconds; left > 0; left -= step) {
      this.clock.advance(Math.min(step, left))
      await atRest()
    }
  }

  async release(caller: Caller | undefined): Promise<void> {
    caller?.slot?.release()
    await atRest()
  }
}
