import { Model } from './model.ts'
import type { Policy } from './policies.ts'
import { seededRandom } from './random.ts'
import { VirtualClock } from './virtual-clock.ts'
import type { Job } from './workload.ts'

/** How one request of a run ended. Milliseconds. */
export interface Ending {
  readonly job: Job
  /** Whether its user got an answer, and not later than the budget. */
  readonly inTime: boolean
  /** From its arrival to the answer or the failure. */
  readonly elapsed: number
  /** What it took of the model's slots, whether or not somebody got the answer. */
  readonly slotTime: number
}

/** Does all jobs under one policy, in virtual time, until the last slot is free again. */
export async function runPolicy(
  policy: Policy,
  jobs: readonly Job[],
  { budget, seed }: { readonly budget: number; readonly seed: number },
): Promise<readonly Ending[]> {
  const clock = new VirtualClock()
  const model = new Model(clock)
  const handle = policy.open({ clock, model, budget, random: seededRandom(seed, policy.name) })
  const ends: Array<{ readonly job: Job; readonly answered: boolean; readonly elapsed: number }> = []
  for (const job of jobs) {
    const end = (answered: boolean): void => {
      ends.push({ job, answered, elapsed: clock.now() - job.arrival })
    }
    clock.wakeAfter(job.arrival, () => {
      handle(job).then(
        () => end(true),
        () => end(false),
      )
    })
  }
  await clock.run()
  if (ends.length !== jobs.length) throw new Error(`${jobs.length - ends.length} requests have never ended`)
  return ends.map(({ job, answered, elapsed }) => ({
    job,
    inTime: answered && elapsed <= budget,
    elapsed,
    slotTime: model.slotTime(job),
  }))
}
