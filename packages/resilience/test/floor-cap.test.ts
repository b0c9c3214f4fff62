import { expect, test } from 'vitest'
import { ManualClock } from '@timebudget/core/testing'
import { learnedFloor, type LearnedFloor } from '../src/index.ts'
import { floorUnderTest, judgements, teach } from './support/floors.ts'
import { seededRandom } from './support/seeded-random.ts'

const enough = 1000
const tooLittle = 50

function refusedOf(
  floor: LearnedFloor,
  { starts, remaining }: { starts: number; remaining: number },
): number {
  let refused = 0
  for (let start = 0; start < starts; start += 1) if (floor.current(remaining) > remaining) refused += 1
  return refused
}

test('at most a fifth of the starts is refused by default', () => {
  const { floor } = floorUnderTest({ cap: undefined })
  teach(floor, 200)
  const judged = judgements()
  expect(refusedOf(floor, { starts: 100, remaining: tooLittle })).toBe(20)
  expect(judged.filter(({ decision }) => decision === 'capped')).toHaveLength(80)
})

test('the cap can be another share, or off', () => {
  const tight = floorUnderTest({ cap: { share: 0.1 } }).floor
  const off = floorUnderTest({ cap: null }).floor
  for (const floor of [tight, off]) teach(floor, 200)
  expect(refusedOf(tight, { starts: 100, remaining: tooLittle })).toBe(10)
  expect(refusedOf(off, { starts: 100, remaining: tooLittle })).toBe(100)
})

test('whatever the traffic, never more than a fifth of the starts of the last 10 s are refused', () => {
  const { floor, clock } = floorUnderTest({ cap: {}, window: '1h' })
  teach(floor, 200)
  const random = seededRandom(3)
  const starts: { at: number; refused: boolean }[] = []
  let refusals = 0
  for (let second = 0; second < 120; second += 1) {
    // bursts and quiet seconds, wholly hopeless ones and wholly healthy ones
    const rate = random() < 0.3 ? 200 : Math.floor(random() * 20)
    const hopeless = random() < 0.5 ? 1 : random() * 0.3
    for (let start = 0; start < rate; start += 1) {
      clock.advance(1000 / rate)
      const remaining = random() < hopeless ? tooLittle : enough
      const refused = floor.current(remaining) > remaining
      starts.push({ at: clock.now(), refused })
      if (!refused) continue
      refusals += 1
      const recent = starts.filter(({ at }) => at > clock.now() - 10_000)
      expect(recent.filter((other) => other.refused).length).toBeLessThanOrEqual(recent.length * 0.2)
    }
  }
  expect(refusals).toBeGreaterThan(starts.length * 0.1)
})

test('healthy traffic uses up nothing of what may be refused', () => {
  const { floor, clock } = floorUnderTest({ cap: {} })
  teach(floor, 200)
  for (let second = 0; second < 30; second += 1) {
    expect(refusedOf(floor, { starts: 80, remaining: enough })).toBe(0)
    clock.advance(1000)
  }
  expect(refusedOf(floor, { starts: 100, remaining: tooLittle })).toBe(100)
})

test('starts that were let through use up nothing of it either', () => {
  let busy = false
  const { floor } = floorUnderTest({ cap: {}, pressure: () => busy })
  teach(floor, 200)
  expect(refusedOf(floor, { starts: 80, remaining: tooLittle })).toBe(0)
  busy = true
  expect(refusedOf(floor, { starts: 20, remaining: tooLittle })).toBe(20)
})

test('refusals count for 10 s', () => {
  const { floor, clock } = floorUnderTest({ cap: {} })
  teach(floor, 200)
  expect(refusedOf(floor, { starts: 100, remaining: tooLittle })).toBe(20)
  clock.advance(9500)
  expect(refusedOf(floor, { starts: 50, remaining: tooLittle })).toBe(10)
  clock.advance(11_000)
  expect(refusedOf(floor, { starts: 50, remaining: tooLittle })).toBe(10)
})

test('few starts are never refused', () => {
  const { floor, clock } = floorUnderTest({ cap: {}, window: '1h' })
  teach(floor, 200)
  for (let minute = 0; minute < 20; minute += 1) {
    expect(refusedOf(floor, { starts: 4, remaining: tooLittle })).toBe(0)
    clock.advance(60_000)
  }
})

test('floors of one operation share the cap of the process, those of others do not', () => {
  const clock = new ManualClock()
  const options = { clock, mode: 'enforce', pressure: () => true, explore: 0 } as const
  const [one, two, other] = ['generate', 'generate', 'retrieve'].map((name) => learnedFloor(name, options))
  if (one === undefined || two === undefined || other === undefined) throw new Error('three floors')
  for (const floor of [one, two, other]) teach(floor, 200)
  expect(refusedOf(one, { starts: 50, remaining: tooLittle })).toBe(10)
  expect(refusedOf(two, { starts: 4, remaining: tooLittle })).toBe(0)
  expect(refusedOf(two, { starts: 46, remaining: tooLittle })).toBe(10)
  expect(refusedOf(other, { starts: 50, remaining: tooLittle })).toBe(10)
})
