import { type Clock, Deadline, operation } from '@timebudget/core'
import {
  DeadlineQueue,
  LatencyBook,
  type LearnedFloor,
  learnedFloors,
  type LearnedFloors,
  type Pressure,
} from '@timebudget/resilience'
import { FirstComeSlots } from './first-come-slots.ts'
import { type Model, takeTime } from './model.ts'
import type { Random } from './random.ts'
import { type Job, slots } from './workload.ts'

/** Where a policy is at work. */
export interface Setting {
  readonly clock: Clock
  readonly model: Model
  /** Milliseconds that a user waits at most. */
  readonly budget: number
  readonly random: Random
}

/** Does a job; settles when its user hears of it, with an answer or with a failure. */
export type Handler = (job: Job) => Promise<void>

/** A way for the chain to deal with time. */
export interface Policy {
  readonly name: string
  open(setting: Setting): Handler
}

const noTimeouts: Policy = {
  name: 'no timeouts',
  open({ clock, model }) {
    const line = new FirstComeSlots(slots)
    return async function waitForEver(job) {
      await takeTime(clock, job.retrieve)
      await takeTime(clock, job.rerank)
      await line.run(() => model.generate(job))
    }
  },
}

/** Each hop has its own timeout, a fixed part of the budget, and whoever gives up does not tell the hop behind. */
const staticTimeouts: Policy = {
  name: 'static timeouts',
  open({ clock, model, budget }) {
    const line = new FirstComeSlots(slots)
    return async function giveUpPerHop(job) {
      await givingUp(clock, budget / 12, takeTime(clock, job.retrieve))
      await givingUp(clock, budget / 12, takeTime(clock, job.rerank))
      await givingUp(
        clock,
        (budget * 10) / 12,
        line.run(() => model.generate(job)),
      )
    }
  },
}

const propagation: Policy = {
  name: 'deadline propagated',
  open: (setting) => propagated(setting, { floorOf: () => undefined, line: new FirstComeSlots(slots) }),
}

const shortCircuit: Policy = {
  name: '+ learned floors',
  open(setting) {
    const line = new FirstComeSlots(slots)
    const floors = floorsUnder(line, setting)
    return propagated(setting, { floorOf: (job) => floors.for(`generate ${job.class}`), line })
  },
}

/** The queue learns by itself how long each class of work takes. */
const learningQueue: Policy = {
  name: '+ queue that learns',
  open: (setting) =>
    queued(setting, { estimate: new LatencyBook({ clock: setting.clock }), estimateOf: () => undefined }),
}

/** The queue is told with each request how long its work will take, more or less. */
const toldQueue: Policy = {
  name: '+ queue with estimates',
  open: (setting) => queued(setting, { estimate: undefined, estimateOf: (job) => job.estimate }),
}

/** The ways that are compared, each one better equipped than the one before. */
export const policies: readonly Policy[] = [
  noTimeouts,
  staticTimeouts,
  propagation,
  shortCircuit,
  learningQueue,
  toldQueue,
]

/** Floors as they are by default, once they may refuse. */
function floorsUnder(pressure: Pressure, { clock, random }: Setting): LearnedFloors {
  return learnedFloors({ mode: 'enforce', pressure, clock, random })
}

/** Deadlines reach the model: whose time is up leaves the line, or the slot. */
function propagated(
  setting: Setting,
  { floorOf, line }: { floorOf: (job: Job) => LearnedFloor | undefined; line: FirstComeSlots },
): Handler {
  return underDeadline(setting, (job, deadline) =>
    operation('llm', { deadline }, ({ signal }) =>
      line.run(
        () =>
          operation('generate', { deadline, floor: floorOf(job) }, (scope) =>
            setting.model.generate(job, scope.signal),
          ),
        signal,
      ),
    ),
  )
}

function queued(
  setting: Setting,
  {
    estimate,
    estimateOf,
  }: { estimate: LatencyBook | undefined; estimateOf: (job: Job) => number | undefined },
): Handler {
  const { clock, model } = setting
  const queue = new DeadlineQueue({ name: 'model', slots, estimate, clock })
  const floors = floorsUnder(queue, setting)
  return underDeadline(setting, (job, deadline) =>
    queue.run(({ signal }) => model.generate(job, signal), {
      operation: 'generate',
      key: job.class,
      class: job.class,
      estimate: estimateOf(job),
      floor: floors.for(`generate ${job.class}`),
      deadline,
    }),
  )
}

function underDeadline(
  { clock, budget }: Pick<Setting, 'clock' | 'budget'>,
  generate: (job: Job, deadline: Deadline) => Promise<void>,
): Handler {
  return async function keepToDeadline(job) {
    const deadline = Deadline.after(budget, { clock })
    try {
      await operation('retrieve', { deadline }, ({ signal }) => takeTime(clock, job.retrieve, signal))
      await operation('rerank', { deadline }, ({ signal }) => takeTime(clock, job.rerank, signal))
      await generate(job, deadline)
    } finally {
      deadline.settle()
    }
  }
}

/** Rejects after that many milliseconds; the work goes on and nobody hears of it. */
function givingUp(clock: Clock, timeout: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.wakeAfter(timeout, () => reject(new Error(`given up after ${timeout} ms`)))
    work.then(resolve, reject).finally(() => timer.cancel())
  })
}
