import { expect, test } from 'vitest'
import { learnedFloor, type LearnedFloor } from '../src/index.ts'
import { floorUnderTest, questions, teach } from './support/floors.ts'

/** Asks as often, over two seconds. */
function ask(
  { floor, clock }: ReturnType<typeof floorUnderTest>,
  { starts, remaining }: { starts: number; remaining: number },
): void {
  for (let start = 0; start < starts; start += 1) {
    clock.advance(2000 / starts)
    floor.current(remaining)
  }
}

/** A tenth of its calls is done within 400 ms, the others within 2 s. */
function teachSlow(floor: LearnedFloor): void {
  for (let call = 0; call < 100; call += 1) floor.record({ spent: call < 12 ? 400 : 2000, outcome: 'ok' })
}

test('budgets that can hardly be met are said, with the share that meets them', () => {
  const under = floorUnderTest({ mode: 'observe' })
  teachSlow(under.floor)
  const asked = questions()
  ask(under, { starts: 64, remaining: 800 })
  expect(asked).toEqual([
    {
      operation: under.floor.operation,
      kind: 'budget_too_short',
      share: expect.closeTo(0.12, 5) as number,
      message: '12 % of calls finish within this budget of 800 ms',
    },
  ])
})

test('a few short budgets among long ones are not', () => {
  const under = floorUnderTest({ mode: 'observe' })
  teachSlow(under.floor)
  const asked = questions()
  for (let round = 0; round < 10; round += 1) {
    ask(under, { starts: 3, remaining: 100 })
    ask(under, { starts: 4, remaining: 3000 })
  }
  expect(asked).toEqual([])
})

test('nor are budgets of which nothing is known, and those without an end', () => {
  const under = floorUnderTest({ mode: 'observe' })
  for (let call = 0; call < 100; call += 1) under.floor.record({ spent: 400, outcome: 'cancelled' })
  const asked = questions()
  ask(under, { starts: 64, remaining: 800 })
  ask(under, { starts: 64, remaining: Infinity })
  expect(asked).toEqual([])
})

test('starts that nothing bounds are no long budgets', () => {
  const under = floorUnderTest({ mode: 'observe' })
  teachSlow(under.floor)
  const asked = questions()
  for (let round = 0; round < 15; round += 1) {
    ask(under, { starts: 4, remaining: Infinity })
    ask(under, { starts: 2, remaining: 800 })
  }
  expect(asked).toHaveLength(1)
})

test('a floor that more than half of the starts fall under is said, although it only observes', () => {
  const under = floorUnderTest({ mode: 'observe', quantile: 0.95 })
  for (let call = 0; call < 100; call += 1) {
    under.floor.record({ spent: call < 80 ? 100 : 900, outcome: 'ok' })
  }
  const asked = questions()
  for (let round = 0; round < 10; round += 1) {
    ask(under, { starts: 6, remaining: 500 })
    ask(under, { starts: 4, remaining: 1000 })
  }
  expect(asked).toHaveLength(1)
  expect(asked[0]).toMatchObject({ operation: under.floor.operation, kind: 'refuses_most' })
  expect(asked[0]?.share).toBeGreaterThan(0.5)
  expect(asked[0]?.message).toMatch(/^\d+ % of starts have less left than the learned floor of \d+ ms$/)
})

test('a floor that half of the starts fall under is not', () => {
  const under = floorUnderTest({ mode: 'observe', quantile: 0.95 })
  for (let call = 0; call < 100; call += 1) {
    under.floor.record({ spent: call < 80 ? 100 : 900, outcome: 'ok' })
  }
  const asked = questions()
  for (let round = 0; round < 10; round += 1) {
    ask(under, { starts: 5, remaining: 1000 })
    ask(under, { starts: 5, remaining: 500 })
  }
  expect(asked).toEqual([])
})

test('it is said once a minute, whichever floor of the operation finds it', () => {
  const under = floorUnderTest({ mode: 'observe', window: '1h' })
  const other = learnedFloor(under.floor.operation, { clock: under.clock, window: '1h' })
  for (const floor of [under.floor, other]) teachSlow(floor)
  const asked = questions()
  for (let second = 0; second < 116; second += 4) {
    ask(under, { starts: 30, remaining: 800 })
    ask({ floor: other, clock: under.clock }, { starts: 30, remaining: 800 })
  }
  expect(asked).toHaveLength(2)
})

test('a healthy operation is never questioned', () => {
  const under = floorUnderTest({})
  teach(under.floor, 200)
  const asked = questions()
  ask(under, { starts: 500, remaining: 1000 })
  expect(asked).toEqual([])
})
