import { expect, test } from 'vitest'
import type { DeadlineQueueOptions, QueueRequest } from '../src/index.ts'
import { atRest, Scene } from './support/queue.ts'
import { seededRandom } from './support/seeded-random.ts'

interface Stream {
  readonly name: string
  /** Milliseconds between two arrivals, on average. */
  readonly every: number
  /** Milliseconds of work. */
  readonly takes: number
  readonly budget: number
  readonly request?: QueueRequest
}

interface Fared {
  /** Of all slot time that was handed out, 0 to 1. */
  readonly share: Readonly<Record<string, number>>
  readonly answered: Readonly<Record<string, number>>
}

/** Lets streams of requests come to a queue for a minute on the clock, and counts what became of them. */
async function simulate(
  options: Omit<DeadlineQueueOptions, 'clock'>,
  streams: readonly Stream[],
): Promise<Fared> {
  const scene = new Scene(options)
  const random = seededRandom(5)
  const slotTime: Record<string, number> = {}
  const answered: Record<string, number> = {}
  const step = 10
  for (let now = 0; now < 60_000; now += step) {
    for (const { name, every, takes, budget, request } of streams) {
      if (random() >= step / every) continue
      const deadline = scene.deadline(budget)
      const work = ({ signal }: { readonly signal: AbortSignal }): Promise<void> =>
        new Promise((resolve, reject) => {
          const begun = scene.clock.now()
          const timer = scene.clock.wakeAfter(takes, end)
          signal.addEventListener('abort', end)
          function end(): void {
            timer.cancel()
            slotTime[name] = (slotTime[name] ?? 0) + scene.clock.now() - begun
            if (signal.aborted) reject(signal.reason)
            else {
              answered[name] = (answered[name] ?? 0) + 1
              resolve()
            }
          }
        })
      scene.queue
        .run(work, { estimate: takes, ...request, deadline })
        .catch(() => undefined)
        .finally(() => deadline.settle())
    }
    await scene.turn(step)
  }
  const total = Object.values(slotTime).reduce((sum, time) => sum + time, 0)
  return {
    share: Object.fromEntries(Object.entries(slotTime).map(([name, time]) => [name, time / total])),
    answered,
  }
}

const short: Stream = { name: 'short', every: 20, takes: 100, budget: 1000 }
const long: Stream = { name: 'long', every: 500, takes: 2000, budget: 6000 }

test('long work gets half its fair share of the slots although there is short work enough for all of them', async () => {
  const { share } = await simulate({ slots: 4 }, [short, long])
  expect(share['long']).toBeGreaterThan(0.25)
  expect(share['short']).toBeGreaterThan(0.25)
})

test('that holds also for work that could only ever be done by being next', async () => {
  const tight = { ...long, budget: 2600 }
  const { share } = await simulate({ slots: 4 }, [short, tight])
  expect(share['long']).toBeGreaterThan(0.25)
})

test('a class that floods the queue leaves the others half of an equal share each', async () => {
  const alike = { takes: 200, budget: 1500 }
  const { share } = await simulate({ slots: 2 }, [
    { name: 'flood', every: 10, ...alike, budget: 700, request: { class: 'flood' } },
    { name: 'paid', every: 200, ...alike, request: { class: 'paid' } },
    { name: 'free', every: 200, ...alike, request: { class: 'free' } },
  ])
  expect(share['paid']).toBeGreaterThan(0.16)
  expect(share['free']).toBeGreaterThan(0.16)
  expect(share['flood']).toBeGreaterThan(0.3)
})

test('a lower priority gets a tenth of the slots while a higher one wants them all', async () => {
  const alike = { every: 40, takes: 200, budget: 2000 }
  const { share } = await simulate({ slots: 2 }, [
    { name: 'users', ...alike, request: { priority: 0 } },
    { name: 'batch', ...alike, request: { priority: 1 } },
  ])
  expect(share['batch']).toBeGreaterThan(0.08)
  expect(share['batch']).toBeLessThan(0.2)
})

test('the shares hold as well where nobody knows how long anything takes', async () => {
  const unknown = { estimate: undefined }
  const { share } = await simulate({ slots: 4 }, [
    { ...short, request: { ...unknown, class: 'short' } },
    { ...long, request: { ...unknown, class: 'long' } },
  ])
  expect(share['long']).toBeGreaterThan(0.25)
  expect(share['short']).toBeGreaterThan(0.25)
})

test('at twice what the slots can do most of what is begun is answered in time', async () => {
  const { answered } = await simulate({ slots: 2 }, [{ name: 'work', every: 100, takes: 400, budget: 1500 }])
  expect(answered['work']).toBeGreaterThan(0.95 * 2 * (60_000 / 400))
})

test('who was refused without a deadline counts as wanting for five minutes, not for ever', async () => {
  const predicted = async (pause: number): Promise<number> => {
    const scene = new Scene({ slots: 1, estimate: 1000, maxWaiting: 2 })
    await scene.fill()
    for (const budget of [9000, 9500]) scene.come({ class: 'long', budget })
    const refused = scene.come({ class: 'gone' })
    await scene.turn(10_000)
    expect(refused.state).toBe('refused')
    await scene.turn(pause)
    scene.come({ class: 'long', estimate: 3000, budget: 60_000 })
    scene.come({ class: 'short', estimate: 100, budget: 61_000 })
    return scene.queue.predictedWait({ class: 'short', deadline: scene.deadline(62_000) })
  }
  // among two classes instead of three, it comes sooner
  expect(await predicted(5 * 60_000)).toBeLessThan(await predicted(4 * 60_000))
})

test('a thousand priorities are 32: the others join the nearest, in order of their deadlines', async () => {
  const scene = new Scene({ slots: 1, estimate: 1 })
  const [holder] = await scene.fill()
  const callers = Array.from({ length: 1000 }, (_, priority) =>
    scene.come({ priority, budget: 200_000 - priority }),
  )
  await atRest()
  await scene.release(holder)
  const served: number[] = []
  for (let turn = 0; turn < callers.length; turn += 1) {
    const next = callers.findIndex(({ state }, index) => state === 'holding' && !served.includes(index))
    served.push(next)
    await scene.release(callers[next])
  }
  expect(served.slice(0, 31)).toEqual(Array.from({ length: 31 }, (_, priority) => priority))
  expect(served[31]).toBe(999)
  expect(new Set(served).size).toBe(1000)
})
