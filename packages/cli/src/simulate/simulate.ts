import { type Measures, measure } from './measures.ts'
import { policies } from './policies.ts'
import { runPolicy } from './run.ts'
import { arrivals } from './workload.ts'

/** What is simulated. Times in milliseconds. */
export interface SimulationOptions {
  /** Times the capacity of the model, each simulated on its own. */
  readonly loads: readonly number[]
  /** What each user waits at most. */
  readonly budget: number
  /** How long requests arrive before their fate counts: queues fill and floors learn. */
  readonly warmup: number
  /** How long requests arrive whose fate counts. */
  readonly duration: number
  readonly seed: number
  /** How far estimates of a request's work are off: the coefficient of variation, 0.35 for 35 %. */
  readonly noise: number
}

/** One policy at one load. */
export interface SimulationResult extends Measures {
  readonly load: number
  readonly policy: string
}

/** Puts the same requests through every policy, at each load. The same options give the same results, to the last digit. */
export async function simulate(options: SimulationOptions): Promise<readonly SimulationResult[]> {
  const { loads, budget, warmup, duration, seed, noise } = options
  const results: SimulationResult[] = []
  for (const load of loads) {
    const jobs = arrivals({ load, duration: warmup + duration, seed, noise })
    for (const policy of policies) {
      const endings = await runPolicy(policy, jobs, { budget, seed })
      const measures = measure(endings, { from: warmup, to: warmup + duration, budget })
      results.push({ load, policy: policy.name, ...measures })
    }
  }
  return results
}
