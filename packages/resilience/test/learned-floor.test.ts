import {
  type BudgetTooSmallError,
  Deadline,
  OperationTimeoutError,
  operation,
  type Outcome,
  outcomes,
} from '@timebudget/core'
import { describe, expect, test, vi } from 'vitest'
import { learnedFloor } from '../src/index.ts'
import { floorUnderTest, judgements, teach } from './support/floors.ts'

describe('what a floor says', () => {
  test('nothing, before it has seen enough calls', () => {
    const { floor } = floorUnderTest()
    teach(floor, 200, { calls: 19 })
    expect(floor.current()).toBe(0)
    expect(floor.current(1)).toBe(0)
    teach(floor, 200, { calls: 1 })
    expect(floor.current()).toBeCloseTo(200, -0.7)
    expect(floor.current(1)).toBe(floor.current())
  })

  test('by default, refuses what finishes less than one time in twenty', () => {
    const { floor } = floorUnderTest()
    for (let spent = 10; spent <= 1000; spent += 10) floor.record({ spent, outcome: 'ok' })
    expect(floor.current()).toBeGreaterThan(48)
    expect(floor.current()).toBeLessThan(52)
    expect(floor.current(40)).toBeGreaterThan(40)
    expect(floor.current(60)).toBeLessThanOrEqual(60)
  })

  test('with minChance 0.5, refuses what finishes less than every other time', () => {
    const { floor } = floorUnderTest({ minChance: 0.5 })
    for (let spent = 10; spent <= 1000; spent += 10) floor.record({ spent, outcome: 'ok' })
    expect(floor.current(450)).toBeGreaterThan(450)
    expect(floor.current(520)).toBeLessThanOrEqual(520)
  })

  test('with a quantile, needs what that share of the calls needs', () => {
    const { floor } = floorUnderTest({ quantile: 0.95 })
    for (let spent = 10; spent <= 1000; spent += 10) floor.record({ spent, outcome: 'ok' })
    expect(floor.current(900)).toBeGreaterThan(900)
    expect(floor.current(980)).toBeLessThanOrEqual(980)
  })

  test('a start with just what calls take begins', () => {
    const { floor } = floorUnderTest({ quantile: 0.95 })
    teach(floor, 200)
    expect(floor.current(200)).toBeLessThanOrEqual(200)
    expect(floor.current(Infinity)).toBeLessThan(210)
    // the floor is the middle of a bin 2 % wide, and all of it is what calls take
    expect(floor.current(floor.current() - 0.5)).toBe(0)
    expect(floor.current(Number.NaN)).toBe(0)
  })

  test('budgets longer than any that was tried are let through', () => {
    const { floor } = floorUnderTest()
    for (let call = 0; call < 100; call += 1) floor.record({ spent: 800, outcome: 'deadline_exceeded' })
    expect(floor.current(700)).toBeGreaterThan(700)
    expect(floor.current(900)).toBeLessThanOrEqual(900)
  })
})

describe('what a floor learns from', () => {
  const done: Outcome[] = ['ok', 'degraded']
  const cut: Outcome[] = [
    ...(['deadline_exceeded', 'operation_timeout', 'total_timeout', 'first_token_timeout'] as const),
    ...(['client_closed', 'cancelled', 'shutdown'] as const),
  ]

  test.each(done)('%s is how long it takes', (outcome) => {
    const { floor } = floorUnderTest()
    for (let call = 0; call < 20; call += 1) floor.record({ spent: 100, outcome })
    expect(floor.latency.chance(100)).toBe(1)
  })

  test.each(cut)('%s says that it takes longer', (outcome) => {
    const { floor } = floorUnderTest()
    for (let call = 0; call < 20; call += 1) floor.record({ spent: 100, outcome })
    expect(floor.latency.samples).toBe(20)
    expect(floor.latency.chance(100)).toBe(0)
  })

  test.each(outcomes.filter((outcome) => !done.includes(outcome) && !cut.includes(outcome)))(
    '%s says nothing',
    (outcome) => {
      const { floor } = floorUnderTest()
      floor.record({ spent: 100, outcome })
      expect(floor.latency.samples).toBe(0)
    },
  )
})

describe('in operation()', () => {
  test('a start under the floor is refused, and teaches nothing', async () => {
    const { floor, clock } = floorUnderTest()
    teach(floor, 200)
    const deadline = Deadline.after(120, { clock })
    const work = vi.fn<() => Promise<void>>()
    const refused = operation('retrieve', { floor, deadline }, work)
    await expect(refused).rejects.toMatchObject({
      code: 'BUDGET_TOO_SMALL',
    } satisfies Partial<BudgetTooSmallError>)
    expect(work).not.toHaveBeenCalled()
    expect(floor.latency.samples).toBe(100)
    expect(deadline.ledger.entries[0]?.floor).toBeCloseTo(200, -0.7)
  })

  test('what begins teaches how long it took, or that it took longer', async () => {
    const { floor, clock } = floorUnderTest({ minSamples: 1 })
    const deadline = Deadline.after(1000, { clock })
    await operation('retrieve', { floor, deadline }, () => clock.advance(50))
    expect(floor.latency.samples).toBe(1)
    expect(floor.latency.chance(51)).toBe(1)
    const slow = operation(
      'retrieve',
      { floor, deadline, timeout: 80 },
      () => new Promise<never>(() => undefined),
    )
    clock.advance(80)
    await expect(slow).rejects.toBeInstanceOf(OperationTimeoutError)
    expect(floor.latency.samples).toBe(2)
    expect(floor.latency.chance(79)).toBeCloseTo(0.5, 5)
  })

  test('a reserve is kept above the floor', async () => {
    const { floor, clock } = floorUnderTest()
    teach(floor, 200)
    const deadline = Deadline.after(300, { clock })
    const refused = operation('retrieve', { floor, deadline, reserve: 150 }, () => 'begun')
    await expect(refused).rejects.toMatchObject({ code: 'BUDGET_TOO_SMALL' })
    await expect(operation('retrieve', { floor, deadline, reserve: 50 }, () => 'begun')).resolves.toBe(
      'begun',
    )
  })
})

describe('when a floor acts', () => {
  test('by default it only observes: it never refuses, and says what it would', async () => {
    const { floor, clock } = floorUnderTest({ mode: undefined })
    teach(floor, 200)
    const judged = judgements()
    const deadline = Deadline.after(50, { clock })
    await expect(operation('retrieve', { floor, deadline }, () => 'begun')).resolves.toBe('begun')
    expect(judged).toEqual([
      {
        operation: floor.operation,
        remaining: 50,
        floor: floor.current(),
        chance: 0,
        decision: 'observed',
      },
    ])
    expect(floor.current(500)).toBe(0)
  })

  test('starts with enough left are not judged', () => {
    const { floor } = floorUnderTest()
    teach(floor, 200)
    const judged = judgements()
    floor.current(500)
    floor.current()
    expect(judged).toEqual([])
  })

  test('without pressure it lets everything through', () => {
    let busy = false
    const { floor } = floorUnderTest({ pressure: () => busy })
    teach(floor, 200)
    const judged = judgements()
    expect(floor.current(50)).toBe(0)
    busy = true
    expect(floor.current(50)).toBeGreaterThan(50)
    expect(judged.map(({ decision }) => decision)).toEqual(['no_pressure', 'refused'])
  })

  test('the pressure may be a queue that is busy', () => {
    const queue = { busy: false }
    const { floor } = floorUnderTest({ pressure: queue })
    teach(floor, 200)
    expect(floor.current(50)).toBe(0)
    queue.busy = true
    expect(floor.current(50)).toBeGreaterThan(50)
  })

  test('a pressure that throws counts as none, and is warned of once', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const { floor } = floorUnderTest({
      pressure: () => {
        throw new Error('out of order')
      },
    })
    teach(floor, 200)
    expect(floor.current(50)).toBe(0)
    expect(floor.current(50)).toBe(0)
    expect(warned).toHaveBeenCalledTimes(1)
    warned.mockRestore()
  })

  test('by default the pressure is that one call in twenty runs out of time', () => {
    const { floor, clock } = floorUnderTest({ pressure: undefined })
    teach(floor, 200, { calls: 97 })
    for (let call = 0; call < 5; call += 1) floor.record({ spent: 300, outcome: 'deadline_exceeded' })
    expect(floor.current(50)).toBe(0)
    floor.record({ spent: 300, outcome: 'operation_timeout' })
    expect(floor.current(50)).toBeGreaterThan(50)
    clock.advance(61_000)
    teach(floor, 200)
    expect(floor.current(50)).toBe(0)
  })

  test('one call of its own that ran out of time is no pressure, whatever others told it', () => {
    const others = floorUnderTest().floor
    teach(others, 200)
    const { floor } = floorUnderTest({ pressure: undefined })
    floor.latency.merge(others.latency.snapshot())
    floor.record({ spent: 300, outcome: 'deadline_exceeded' })
    expect(floor.current()).toBeGreaterThan(190)
    expect(floor.current(50)).toBe(0)
  })

  test('users who leave are no pressure', () => {
    const { floor } = floorUnderTest({ pressure: undefined })
    teach(floor, 200)
    for (let call = 0; call < 50; call += 1) floor.record({ spent: 100, outcome: 'client_closed' })
    expect(floor.current(50)).toBe(0)
  })

  test('a share of what it would refuse explores', () => {
    const draws = [0.5, 0.04, 0.05, 0]
    const { floor } = floorUnderTest({ explore: 0.05, random: () => draws.shift() ?? 1 })
    teach(floor, 200)
    const judged = judgements()
    const refused = Array.from({ length: 4 }, () => floor.current(50) > 0)
    expect(refused).toEqual([true, false, true, false])
    expect(judged.map(({ decision }) => decision)).toEqual(['refused', 'explored', 'refused', 'explored'])
  })
})

test.each<[object, RegExp]>([
  [{ quantile: 1.5 }, /quantile/],
  [{ quantile: 0.9, minChance: 0.1 }, /quantile/],
  [{ minChance: Number.NaN }, /minChance/],
  [{ explore: -0.1 }, /explore/],
  [{ explore: '5%' }, /explore/],
  [{ mode: 'on' }, /mode/],
  [{ pressure: 'high' }, /pressure/],
  [{ pressure: {} }, /pressure/],
  [{ cap: { share: 20 } }, /cap\.share/],
  [{ cap: 0.2 }, /cap: expected an object with share, window/],
  [{ cap: { window: 'soon' } }, /cap\.window/],
  [{ cap: { window: 0 } }, /cap\.window/],
  [{ store: { get: 1 } }, /store/],
  [{ random: 0.5 }, /random/],
  [{ window: -1 }, /window/],
  [{ minSamples: 0 }, /minSamples/],
  [{ quantil: 0.95 }, /quantil: no such option/],
  [{ cap: { shares: 0.1 } }, /cap\.shares: no such option/],
])('an option that cannot be read is named: %j', (options, message) => {
  expect(() => learnedFloor('work', options)).toThrow(TypeError)
  expect(() => learnedFloor('work', options)).toThrow(message)
})
