import { expect, test } from 'vitest'
import { FirstComeSlots } from '../src/simulate/first-come-slots.ts'
import { Model } from '../src/simulate/model.ts'
import { VirtualClock } from '../src/simulate/virtual-clock.ts'
import { arrivals, type Job, slots } from '../src/simulate/workload.ts'

function jobs(count: number): readonly Job[] {
  return arrivals({ load: 10, duration: 60_000, seed: 1, noise: 0 }).slice(0, count)
}

test('the model writes down the slot time of each job, of what was cut off too', async () => {
  const clock = new VirtualClock()
  const model = new Model(clock)
  const [whole, cut] = jobs(2)
  if (whole === undefined || cut === undefined) throw new Error('no jobs')
  const leaving = new AbortController()
  const finished = model.generate(whole)
  const left = model.generate(cut, leaving.signal)
  clock.wakeAfter(cut.generate / 2, () => leaving.abort(new Error('gone')))
  await Promise.all([clock.run(), expect(left).rejects.toThrow('gone')])
  await finished
  expect(model.slotTime(whole)).toBeCloseTo(whole.generate, 6)
  expect(model.slotTime(cut)).toBeCloseTo(cut.generate / 2, 6)
})

test('work that is cut off leaves no timer behind, and frees its slot', async () => {
  const clock = new VirtualClock()
  const model = new Model(clock)
  const leaving = new AbortController()
  const all = jobs(slots).map((job) => model.generate(job, leaving.signal).catch(() => undefined))
  clock.wakeAfter(1, () => leaving.abort(new Error('gone')))
  await clock.run()
  await Promise.all(all)
  expect(clock.now()).toBe(1)
  const again = jobs(slots).map((job) => model.generate(job))
  await clock.run()
  await Promise.all(again)
})

test('the model never answers more at once than it has slots', async () => {
  const clock = new VirtualClock()
  const model = new Model(clock)
  const all = jobs(slots + 1).map((job) => model.generate(job).then(() => 'ok', String))
  await clock.run()
  const ends = await Promise.all(all)
  expect(ends.filter((end) => end === 'ok')).toHaveLength(slots)
  expect(ends.at(-1)).toContain('slots of the model are taken')
})

test('slots go to those who came first, and whoever leaves the line is passed over', async () => {
  const line = new FirstComeSlots(1)
  const order: string[] = []
  const leaving = new AbortController()
  let finishFirst = (): void => undefined
  const first = new Promise<void>((resolve) => {
    finishFirst = resolve
  })
  const runs = [
    line.run(() => first),
    line.run(async () => void order.push('left'), leaving.signal).catch(() => order.push('gone')),
    line.run(async () => void order.push('second')),
    line.run(async () => void order.push('third')),
  ]
  expect(line.busy).toBe(true)
  leaving.abort(new Error('gone'))
  finishFirst()
  await Promise.all(runs)
  expect(order).toEqual(['gone', 'second', 'third'])
  expect(line.busy).toBe(false)
})
