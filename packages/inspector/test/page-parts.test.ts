import { expect, test } from 'vitest'
import { everything, matches } from '../src/page/filter.ts'
import { count, duration, limit, money, percent } from '../src/page/format.ts'
import { allOutcomes, verdictOf } from '../src/page/outcomes.ts'
import { barsOf, isShortOf, rowScale, spanOf, ticksOf, waterfallScale } from '../src/page/scale.ts'
import type { EntryView, WholeRequest } from '../src/snapshot.ts'

function request(parts: Partial<WholeRequest> = {}): WholeRequest {
  return {
    id: 1,
    method: 'GET',
    path: '/chat/answer',
    startedAt: 1_000,
    startedEpoch: 0,
    budget: 2_000,
    deadlineAt: 2_000,
    source: 'default',
    clamped: false,
    attempt: 1,
    outcome: 'ok',
    elapsed: 500,
    overrun: 0,
    status: 200,
    goneBy: null,
    bars: [],
    changed: 1,
    entries: [],
    dropped: 0,
    ...parts,
  }
}

function entry(parts: Partial<EntryView> = {}): EntryView {
  return {
    name: 'work',
    depth: 0,
    start: 100,
    remaining: 900,
    granted: 400,
    floor: 50,
    reserve: 200,
    spent: 300,
    outcome: 'ok',
    peer: false,
    code: null,
    ...parts,
  }
}

test('a filter wants all of its words, in method or path, whatever their case', () => {
  const passes = (text: string): boolean => matches(request(), { ...everything, text }, 0)
  expect(['', 'CHAT', 'get answer', 'answer get', '/chat/'].map(passes)).toEqual(Array(5).fill(true))
  expect(['post', 'chat question'].map(passes)).toEqual([false, false])
})

test('slower than counts what a running request has taken so far', () => {
  const slower = { ...everything, slowerThan: 600 }
  expect(matches(request(), slower, 9_999)).toBe(false)
  expect(matches(request({ elapsed: 600 }), slower, 0)).toBe(true)
  const running = request({ outcome: null, elapsed: null })
  expect(matches(running, slower, 1_599)).toBe(false)
  expect(matches(running, slower, 1_600)).toBe(true)
})

test('trouble is what has ended otherwise than well; what runs is only in flight', () => {
  const trouble = { ...everything, outcome: 'trouble' }
  const listed = allOutcomes.filter((outcome) => matches(request({ outcome }), trouble, 0))
  expect(listed).toEqual(allOutcomes.filter((outcome) => outcome !== 'ok'))
  expect(matches(request({ outcome: null }), trouble, 0)).toBe(false)
  expect(matches(request({ outcome: null }), { ...everything, inFlight: true }, 0)).toBe(true)
  expect(matches(request(), { ...everything, inFlight: true }, 0)).toBe(false)
})

test('every outcome has a verdict of its own kind', () => {
  expect(allOutcomes).toHaveLength(16)
  expect(verdictOf('first_token_timeout')).toBe('late')
  expect(verdictOf('short_circuited')).toBe('refused')
  expect(verdictOf('client_closed')).toBe('left')
  expect(verdictOf(null)).toBe('running')
})

test('the deadline of every row is in one line, whatever its budget', () => {
  for (const deadlineAt of [50, 2_000, 300_000])
    expect(rowScale(request({ deadlineAt }), 10, 'budget').deadline).toBeCloseTo(84)
  expect(rowScale(request({ deadlineAt: null }), 400, 'budget')).toMatchObject({ deadline: undefined })
  expect(rowScale(request(), 400, 'time')).toMatchObject({ end: 416, deadline: undefined })
})

test('a waterfall shows all operations, and the whole budget where that is asked for', () => {
  const late = request({ entries: [entry({ start: 400, spent: 900 })] })
  expect(waterfallScale(late, 500, 'time').end).toBeCloseTo(1_365)
  expect(waterfallScale(late, 500, 'budget')).toMatchObject({ end: 2_100, deadline: expect.closeTo(95.2, 0) })
  expect(isShortOf(late, 100)).toBe(true)
  expect(isShortOf(late, 500)).toBe(false)
})

test('floor and grant are drawn from the start of an operation, its reserve before the end of what was left', () => {
  const scale = { end: 1_000, deadline: undefined }
  expect(barsOf(entry(), 500, scale)).toEqual({
    spent: { left: 10, width: 30 },
    granted: { left: 10, width: 40 },
    floor: { left: 10, width: 5 },
    reserve: { left: 80, width: 20 },
  })
  const open = barsOf(
    entry({ granted: null, remaining: null, reserve: 0, spent: null, floor: 0 }),
    500,
    scale,
  )
  expect(open).toMatchObject({ granted: { left: 10, width: 90 }, spent: { width: 40 }, floor: { width: 0 } })
  expect(open.reserve.width).toBe(0)
})

test('what lies beyond the axis ends at its end', () => {
  expect(spanOf(500, 5_000, { end: 1_000, deadline: undefined })).toEqual({ left: 50, width: 50 })
  expect(spanOf(5_000, 6_000, { end: 1_000, deadline: undefined })).toEqual({ left: 100, width: 0 })
})

test.each([0.8, 3, 47, 625, 1_050, 9_999, 63_000, 3_600_000])(
  'an axis of %d ms has a few round numbers',
  (end) => {
    const ticks = ticksOf({ end, deadline: undefined })
    expect(ticks[0]).toBe(0)
    expect(ticks.length).toBeGreaterThan(2)
    expect(ticks.length).toBeLessThan(8)
  },
)

test('durations, shares and amounts are short', () => {
  expect(
    [0, 0.44, 9.94, 9.96, 999.4, 999.6, 3_250, 10_040, 59_960, 125_000, 3_600_000, null].map(duration),
  ).toEqual([
    '0 ms',
    '0.4 ms',
    '9.9 ms',
    '10 ms',
    '999 ms',
    '1 s',
    '3.25 s',
    '10 s',
    '1 min',
    '2 min 5 s',
    '1 h',
    '–',
  ])
  expect(duration(-12.3)).toBe('−12 ms')
  expect(limit(null)).toBe('no limit')
  expect([null, 0, 0.0004, 0.024, 0.5, 1].map(percent)).toEqual([
    '–',
    '0 %',
    '< 0.1 %',
    '2.4 %',
    '50 %',
    '100 %',
  ])
  expect(count(12_345)).toBe('12,345')
  expect([null, 0, 0.00213, 12.345].map((amount) => money(amount, 'USD'))).toEqual([
    '–',
    'USD 0.00',
    'USD 0.00213',
    'USD 12.35',
  ])
})
