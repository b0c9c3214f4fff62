import { exponential, logNormal, normal, seededRandom } from './random.ts'

/** A kind of work that the model is asked for. */
export interface WorkClass {
  readonly name: string
  /** Of all requests, 0 to 1. */
  readonly share: number
  /** Of the time that one answer takes a slot of the model. Milliseconds. */
  readonly mean: number
}

/** One request, and what nobody knows when it arrives: how long each part of it takes. Milliseconds. */
export interface Job {
  readonly index: number
  readonly arrival: number
  readonly class: string
  readonly retrieve: number
  readonly rerank: number
  readonly generate: number
  /** What its caller thinks that `generate` takes. */
  readonly estimate: number
}

/** What arrives in one run. */
export interface Workload {
  /** Times the capacity of the model. */
  readonly load: number
  /** Milliseconds for which requests arrive. */
  readonly duration: number
  readonly seed: number
  /** How far estimates are off: the coefficient of variation, 0.35 for 35 %. */
  readonly noise: number
}

/** How many answers the model writes at the same time. */
export const slots = 32

const chat: WorkClass = { name: 'chat', share: 2 / 3, mean: 4_000 }
const summary: WorkClass = { name: 'summary', share: 1 / 3, mean: 10_000 }

/** Two of three requests are short chats, the third a long summary: an answer takes 6 s on average. */
export const workClasses: readonly WorkClass[] = [chat, summary]

const retrieve = { mean: 80, sigma: 0.5 }
const rerank = { mean: 120, sigma: 0.5 }
// answers differ in length about as much as their mean: a coefficient of variation of 0.95
const answerSigma = 0.8

/** Requests a second that the model can answer if no slot ever stands idle or works for nobody. */
export const capacity: number =
  (slots * 1000) / workClasses.reduce((sum, { share, mean }) => sum + share * mean, 0)

/** The requests of a run, in order of arrival. For one seed they need the same work at every load, only closer together. */
export function arrivals({ load, duration, seed, noise }: Workload): readonly Job[] {
  const random = seededRandom(seed, 'arrivals')
  const meanGap = 1000 / (load * capacity)
  const estimateSigma = Math.sqrt(Math.log(1 + noise ** 2))
  const jobs: Job[] = []
  for (let arrival = meanGap * exponential(random); arrival < duration;) {
    const { name, mean } = random() < chat.share ? chat : summary
    const generate = logNormal(mean, answerSigma, normal(random))
    jobs.push({
      index: jobs.length,
      arrival,
      class: name,
      retrieve: logNormal(retrieve.mean, retrieve.sigma, normal(random)),
      rerank: logNormal(rerank.mean, rerank.sigma, normal(random)),
      generate,
      estimate: logNormal(generate, estimateSigma, normal(random)),
    })
    arrival += meanGap * exponential(random)
  }
  return jobs
}
