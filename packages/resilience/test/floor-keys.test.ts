import { expect, test } from 'vitest'
import { ManualClock } from '@timebudget/core/testing'
import { learnedFloor, learnedFloors } from '../src/index.ts'
import { teach } from './support/floors.ts'
import { longText } from './support/long-text.ts'
import { logNormal, seededRandom } from './support/seeded-random.ts'

function heapUsed(): number {
  const collect = globalThis.gc
  if (collect === undefined) throw new Error('run with --expose-gc')
  collect()
  return process.memoryUsage().heapUsed
}

test('every key learns for itself', () => {
  const floors = learnedFloors({ clock: new ManualClock() })
  teach(floors.for('small model'), 100)
  teach(floors.for('large model'), 900)
  expect(floors.for('small model').current()).toBeCloseTo(100, -0.5)
  expect(floors.for('large model').current()).toBeCloseTo(900, -1.5)
  expect(floors.for('new model').current()).toBe(0)
  expect(floors.for('small model').operation).toBe('small model')
})

test('the key longest unused is forgotten first', () => {
  const floors = learnedFloors({ clock: new ManualClock(), maxKeys: 2 })
  for (const key of ['a', 'b', 'a', 'c']) floors.for(key).record({ spent: 1, outcome: 'ok' })
  expect(floors.size).toBe(2)
  expect(floors.for('a').latency.samples).toBe(2)
})

test('ten thousand keys cost a fixed amount of memory', () => {
  const random = seededRandom(5)
  const clock = new ManualClock()
  const before = heapUsed()
  const floors = learnedFloors({ clock })
  for (let key = 0; key < 10_000; key += 1) {
    const floor = floors.for(longText(`key ${key} `))
    for (let call = 0; call < 20; call += 1) {
      const spent = logNormal(random, { median: 200, sigma: 0.5 })
      floor.record({ spent, outcome: call % 5 === 0 ? 'deadline_exceeded' : 'ok' })
    }
    floor.current(50)
  }
  expect(floors.size).toBe(1000)
  expect(heapUsed() - before).toBeLessThan(32 * 2 ** 20)
})

test('floors under ten thousand names that nobody holds any more leave next to nothing', () => {
  const clock = new ManualClock()
  const before = heapUsed()
  for (let name = 0; name < 10_000; name += 1) {
    learnedFloor(longText(`name ${name} `), { clock }).current(50)
  }
  expect(heapUsed() - before).toBeLessThan(4 * 2 ** 20)
  expect(clock.pendingTimers).toBe(0) // and the clock, to which they belong, is there to the end
})

test.each<[object, RegExp]>([
  [{ maxKeys: 0 }, /maxKeys/],
  [{ quantile: 2 }, /quantile/],
  [{ maxkeys: 5 }, /maxkeys: no such option/],
])('an option that cannot be read is named at once: %j', (options, message) => {
  expect(() => learnedFloors(options)).toThrow(message)
})
