import { expect, test } from 'vitest'
import { seededRandom } from '../src/simulate/random.ts'
import { arrivals, capacity, workClasses } from '../src/simulate/workload.ts'

const hour = 3_600_000

test('requests arrive at the load times what the model can answer', () => {
  const jobs = arrivals({ load: 2, duration: hour, seed: 1, noise: 0 })
  expect(capacity).toBeCloseTo(32 / 6, 5)
  expect(jobs.length / 3_600).toBeGreaterThan(2 * capacity * 0.98)
  expect(jobs.length / 3_600).toBeLessThan(2 * capacity * 1.02)
  expect(jobs.every((job, index) => index === 0 || job.arrival >= (jobs[index - 1]?.arrival ?? 0))).toBe(true)
  expect(jobs.at(-1)?.arrival).toBeLessThan(hour)
})

test('each class brings its share of requests and its mean of work', () => {
  const jobs = arrivals({ load: 2, duration: hour, seed: 2, noise: 0 })
  for (const { name, share, mean } of workClasses) {
    const ofClass = jobs.filter((job) => job.class === name)
    const measured = ofClass.reduce((sum, { generate }) => sum + generate, 0) / ofClass.length
    expect(Math.abs(ofClass.length / jobs.length / share - 1)).toBeLessThan(0.05)
    expect(Math.abs(measured / mean - 1)).toBeLessThan(0.05)
  }
})

test('a seed fixes the work, whatever the load and the noise of the estimates', () => {
  const work = (load: number, noise: number): number[] =>
    arrivals({ load, duration: hour / load, seed: 3, noise }).map(({ generate }) => generate)
  expect(work(2, 0.35)).toEqual(work(2, 1))
  expect(work(3, 0.35).slice(0, 1_000)).toEqual(work(0.5, 0.35).slice(0, 1_000))
  expect(arrivals({ load: 1, duration: hour, seed: 4, noise: 0 })).not.toEqual(
    arrivals({ load: 1, duration: hour, seed: 3, noise: 0 }),
  )
})

test('estimates are right on average and off by the noise', () => {
  const jobs = arrivals({ load: 3, duration: hour, seed: 5, noise: 0.35 })
  const errors = jobs.map(({ estimate, generate }) => estimate / generate)
  const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length
  const variance = errors.reduce((sum, error) => sum + (error - mean) ** 2, 0) / errors.length
  expect(Math.abs(mean - 1)).toBeLessThan(0.02)
  expect(Math.abs(Math.sqrt(variance) - 0.35)).toBeLessThan(0.03)
  expect(
    arrivals({ load: 1, duration: 60_000, seed: 5, noise: 0 }).every((job) => job.estimate === job.generate),
  ).toBe(true)
})

test('two streams of one seed have nothing in common, and neither have two seeds of one stream', () => {
  const numbers = (seed: number, stream: string): number[] => {
    const random = seededRandom(seed, stream)
    return Array.from({ length: 1_000 }, random)
  }
  const all = [
    ...numbers(1, 'arrivals'),
    ...numbers(1, 'policies'),
    ...numbers(2, 'arrivals'),
    ...numbers(2, 'policies'),
  ]
  expect(new Set(all).size).toBeGreaterThan(3_990)
  expect(Math.abs(all.reduce((sum, number) => sum + number, 0) / all.length - 0.5)).toBeLessThan(0.02)
  expect(numbers(1, 'arrivals')).toEqual(numbers(1, 'arrivals'))
})
