import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Deadline, operation, startOperation } from '@timebudget/core'
import { ManualClock } from '@timebudget/core/testing'

/** As a caller without types may pass it. */
const bad: unknown[] = [
  Number.NaN,
  -1,
  -Infinity,
  '',
  'soon',
  '-1s',
  '1e18',
  'Infinity',
  `${'9'.repeat(200)}ms`,
  undefined,
  null,
  true,
  {},
  [5],
  5n,
  Symbol('5'),
]
const good: (readonly [duration: number | string, milliseconds: number])[] = [
  [0, 0],
  [0.25, 0.25],
  [1e18, 1e18],
  [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  [Infinity, Infinity],
  ['5000', 5000],
  ['1.5s', 1500],
  ['2m', 120_000],
  ['60 days', 5_184_000_000],
]

const running = (): Deadline => Deadline.after('1m', { clock: new ManualClock() })

test.each(good)('law 6: %j is a duration of %d ms', (duration, milliseconds) => {
  expect(Deadline.after(duration).budget).toBe(milliseconds)
})

const shown = bad.map((value) => ({ value, text: inspect(value).slice(0, 40) }))

describe.each(shown)('law 6: $text is no duration', ({ value }) => {
  const duration = value as number

  test('and a deadline says that its budget is wrong', () => {
    expect(() => Deadline.after(duration)).toThrow(TypeError)
    expect(() => Deadline.after(duration)).toThrow(/^budget: expected a duration/)
  })

  test('and so does what a deadline is asked', () => {
    expect(() => running().timeoutFor(duration)).toThrow(/^want: expected a duration/)
  })
})

describe.each(shown.filter(({ value }) => value !== undefined))(
  'law 6: an option is refused by name when it is $text',
  ({ value }) => {
    const duration = value as number

    test('and a child names the option', () => {
      expect(() => running().child({ timeout: duration })).toThrow(/^timeout: expected a duration/)
      expect(() => running().child({ reserve: duration })).toThrow(/^reserve: expected a duration/)
    })

    test('and an operation names the option before it begins its work', async () => {
      for (const option of ['timeout', 'reserve', 'floor']) {
        let begun = false
        const failed = operation('retrieve', { deadline: running(), [option]: value }, () => (begun = true))
        await expect(failed).rejects.toThrow(TypeError)
        await expect(failed).rejects.toThrow(option)
        expect(begun).toBe(false)
      }
    })
  },
)

test.each([undefined, null, Number.NaN, -1, 'soon'])(
  'a floor of %j is refused by assertRemaining',
  (floor) => {
    expect(() => running().assertRemaining(floor as number)).toThrow(/^floor: expected a duration/)
  },
)

test('an option that is undefined is one that was not given', () => {
  expect(running().child({ timeout: undefined, reserve: undefined }).budget).toBe(60_000)
  const { timeout, entry } = startOperation('retrieve', {
    deadline: running(),
    timeout: undefined,
    floor: undefined,
    reserve: undefined,
  })
  expect({ timeout, floor: entry.floor, reserve: entry.reserve }).toEqual({
    timeout: 60_000,
    floor: 0,
    reserve: 0,
  })
})

test('the message shows what was given, cut if it is long', () => {
  expect(() => Deadline.after('soon')).toThrow("got 'soon'")
  expect(() => Deadline.after('x'.repeat(99))).toThrow(`got '${'x'.repeat(40)}…'`)
  expect(() => Deadline.after(-5)).toThrow('got -5')
})
