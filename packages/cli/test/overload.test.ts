import { floorJudged, queueJudged } from '@timebudget/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Measures, measure } from '../src/simulate/measures.ts'
import { policies } from '../src/simulate/policies.ts'
import { runPolicy } from '../src/simulate/run.ts'
import { arrivals } from '../src/simulate/workload.ts'

const budget = 12_000
const from = 60_000
const to = 180_000

interface Setup {
  readonly load: number
  readonly seed: number
  readonly noise?: number
}

async function under(name: string, { load, seed, noise = 0.35 }: Setup): Promise<Measures> {
  const policy = policies.find((each) => each.name === name)
  if (policy === undefined) throw new Error(`no policy '${name}'`)
  const jobs = arrivals({ load, duration: to, seed, noise })
  return measure(await runPolicy(policy, jobs, { budget, seed }), { from, to, budget })
}

describe.each([1, 2, 3])('at twice the capacity, the same requests for all, seed %i', (seed) => {
  let untimed: Measures
  let timedPerHop: Measures
  let propagated: Measures
  let learning: Measures
  let told: Measures

  beforeAll(async () => {
    untimed = await under('no timeouts', { load: 2, seed })
    timedPerHop = await under('static timeouts', { load: 2, seed })
    propagated = await under('deadline propagated', { load: 2, seed })
    learning = await under('+ queue that learns', { load: 2, seed })
    told = await under('+ queue with estimates', { load: 2, seed })
  })

  test('without timeouts nobody is answered in time, with static ones hardly anybody', () => {
    for (const { inTime, wastedSlotTime } of [untimed, timedPerHop]) {
      expect(inTime).toBeLessThan(0.02)
      expect(wastedSlotTime).toBeGreaterThan(0.95)
    }
  })

  test('a propagated deadline keeps the answers coming', () => {
    expect(propagated.goodput).toBeGreaterThan(4.5)
  })

  test('the queue answers at least 1.3 times as many in time as a propagated deadline alone', () => {
    expect(told.goodput).toBeGreaterThan(1.3 * propagated.goodput)
  })

  test('a queue that learns by itself how long work takes answers 1.15 times as many', () => {
    expect(learning.goodput).toBeGreaterThan(1.15 * propagated.goodput)
  })

  test('the queue wastes at most 12 % of the slot time', () => {
    expect(told.wastedSlotTime).toBeLessThan(0.12)
  })

  test('no class of work gets less than half of its fair share', () => {
    for (const { usefulOfFairShare } of told.classes) expect(usefulOfFairShare).toBeGreaterThan(0.5)
    for (const { ofFairShare } of learning.classes) expect(ofFairShare).toBeGreaterThan(0.5)
  })

  test('most of those whom the queue refuses know it within a second, and not after all their time', () => {
    expect(told.timeToFailure?.p50).toBeLessThan(1_000)
    expect(propagated.timeToFailure?.p50).toBeGreaterThan(11_000)
  })

  test('with estimates that are off by 100 % the queue still answers 1.3 times as many in time', async () => {
    const misled = await under('+ queue with estimates', { load: 2, seed, noise: 1 })
    expect(misled.goodput).toBeGreaterThan(1.3 * propagated.goodput)
  })
})

test.each([1, 2, 3])(
  'at half the capacity queue and floors cost less than 2 of 100 answers, seed %i',
  async (seed) => {
    const propagated = await under('deadline propagated', { load: 0.5, seed })
    for (const policy of ['+ learned floors', '+ queue that learns', '+ queue with estimates']) {
      const { goodput } = await under(policy, { load: 0.5, seed })
      expect(goodput).toBeGreaterThan(0.98 * propagated.goodput)
    }
  },
)

test('floors never make it worse, and where the line is longest they help', async () => {
  for (const load of [1, 2, 3]) {
    const propagated = await under('deadline propagated', { load, seed: 1 })
    const { goodput } = await under('+ learned floors', { load, seed: 1 })
    expect(goodput).toBeGreaterThanOrEqual((load === 3 ? 1.02 : 1) * propagated.goodput)
  }
})

test('the same seed comes to the same, to the last digit, under overload too', async () => {
  const setup = { load: 2, seed: 4 }
  expect(await under('+ queue that learns', setup)).toEqual(await under('+ queue that learns', setup))
})

test('it is the real queue and the real floors that decide', async () => {
  const decisions = new Set<string>()
  const stops = [
    queueJudged.subscribe(({ decision }) => decisions.add(`queue ${decision}`)),
    floorJudged.subscribe(({ decision }) => decisions.add(`floor ${decision}`)),
  ]
  await under('+ queue with estimates', { load: 3, seed: 1 })
  await under('+ learned floors', { load: 3, seed: 1 })
  for (const stop of stops) stop()
  expect([...decisions]).toEqual(
    expect.arrayContaining(['queue admitted', 'queue shed', 'floor refused', 'floor explored']),
  )
})
