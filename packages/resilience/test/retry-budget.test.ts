import { ManualClock } from '@timebudget/core/testing'
import { expect, test } from 'vitest'
import { RetryBudget } from '../src/index.ts'

function withdrawn(budget: RetryBudget, destination: string, tries: number): number {
  let withdrawals = 0
  for (let turn = 0; turn < tries; turn += 1) if (budget.withdraw(destination)) withdrawals += 1
  return withdrawals
}

test('one call in five may be repeated, and ten a second in any case', () => {
  const budget = new RetryBudget({ clock: new ManualClock() })
  for (let call = 0; call < 1_000; call += 1) budget.deposit('search')
  expect(withdrawn(budget, 'search', 1_000)).toBe(300)
})

test('a destination nobody has called has the reserve alone', () => {
  const budget = new RetryBudget({ minPerSecond: 2, window: '5s', clock: new ManualClock() })
  expect(budget.balance('search')).toBe(10)
  expect(withdrawn(budget, 'search', 50)).toBe(10)
})

test('destinations do not share', () => {
  const budget = new RetryBudget({ ratio: 1, minPerSecond: 0, clock: new ManualClock() })
  budget.deposit('search')
  expect(budget.withdraw('rerank')).toBe(false)
  expect(budget.withdraw('search')).toBe(true)
  expect(budget.withdraw('search')).toBe(false)
})

test('what lies further back than the window counts no more, neither calls nor retries', () => {
  const clock = new ManualClock()
  const budget = new RetryBudget({ ratio: 0.5, minPerSecond: 1, window: '10s', clock })
  for (let call = 0; call < 20; call += 1) budget.deposit('search')
  clock.advance(5_000)
  expect(withdrawn(budget, 'search', 50)).toBe(20)
  clock.advance(5_000)
  // the calls are forgotten, the retries are not yet
  expect(budget.balance('search')).toBe(0)
  clock.advance(5_000)
  expect(budget.balance('search')).toBe(10)
})

test('the wall clock does not matter', () => {
  const clock = new ManualClock()
  const budget = new RetryBudget({ minPerSecond: 1, clock })
  expect(withdrawn(budget, 'search', 50)).toBe(10)
  clock.shiftEpoch(3_600_000)
  expect(budget.balance('search')).toBe(0)
  clock.shiftEpoch(-7_200_000)
  expect(budget.balance('search')).toBe(0)
})

test('ten thousand destinations are not kept, nor are long names', () => {
  const clock = new ManualClock()
  const budget = new RetryBudget({ minPerSecond: 0, ratio: 1, maxDestinations: 100, clock })
  for (let index = 0; index < 10_000; index += 1) budget.deposit(`host-${index}`)
  expect(budget.balance('host-0')).toBe(0)
  expect(budget.balance('host-9999')).toBe(1)
  budget.deposit('x'.repeat(100_000))
  expect(budget.balance('x'.repeat(300))).toBe(1)
})

test('fractions add up: five calls with a fifth each make one retry', () => {
  const budget = new RetryBudget({ ratio: 0.2, minPerSecond: 0, clock: new ManualClock() })
  for (let call = 0; call < 4; call += 1) budget.deposit('search')
  expect(budget.withdraw('search')).toBe(false)
  budget.deposit('search')
  expect(budget.withdraw('search')).toBe(true)
})

test.each([
  ['ratio', { ratio: -1 }],
  ['ratio', { ratio: Number.NaN }],
  ['minPerSecond', { minPerSecond: Infinity }],
  ['window', { window: 0 }],
  ['window', { window: 'soon' }],
  ['maxDestinations', { maxDestinations: 0 }],
  ['max', { max: 3 }],
])('an option that cannot be read is named: %s', (name, options: object) => {
  expect(() => new RetryBudget(options)).toThrow(TypeError)
  expect(() => new RetryBudget(options)).toThrow(name)
})
