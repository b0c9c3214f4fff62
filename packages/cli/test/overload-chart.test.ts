import { expect, test } from 'vitest'
import { overloadChart } from '../src/simulate/overload-chart.ts'
import type { SimulationResult } from '../src/simulate/simulate.ts'
import { escaped, ticksTo } from '../src/simulate/svg.ts'

const options = { loads: [1, 2], budget: 12_000, warmup: 0, duration: 1, seed: 1, noise: 0 }

function result(policy: string, load: number, goodput: number): SimulationResult {
  return {
    policy,
    load,
    goodput,
    requests: 1,
    inTime: 1,
    wastedSlotTime: 0.5,
    timeToFailure: undefined,
    classes: [],
  }
}

const pairs = [
  result('fast & <good>', 1, 4),
  result('fast & <good>', 2, 8),
  result('slow', 1, 2),
  result('slow', 2, 0),
]

test('a chart has a curve for each policy in both panels, labelled axes and a key', () => {
  const chart = overloadChart(pairs, options)
  expect(chart.match(/class="curve s\d" d="M[\d.]+ [\d.]+L/g)).toHaveLength(4)
  expect(chart.match(/<circle/g)).toHaveLength(2 * pairs.length)
  expect(chart.match(/load, times the capacity/g)).toHaveLength(2)
  expect(chart).toContain('answers in time, per second')
  expect(chart).toContain('slot time wasted, %')
  expect(chart).toContain('fast &#38; &#60;good&#62;')
  expect(chart).not.toMatch(/NaN|Infinity|undefined|& /)
})

test('a chart can be read on light and on dark pages', () => {
  const chart = overloadChart(pairs, options)
  expect(chart).toContain('@media (prefers-color-scheme: dark)')
  expect(chart).toContain('class="paper"')
})

test('every tag of a chart is closed, so that a strict reader takes it', () => {
  const open: string[] = []
  for (const [, closing, name = '', rest = ''] of overloadChart(pairs, options).matchAll(
    /<(\/?)(\w+)([^>]*)>/g,
  )) {
    if (closing === '/') expect(open.pop()).toBe(name)
    else if (!rest.endsWith('/')) open.push(name)
  }
  expect(open).toEqual([])
})

test('the points of a curve stand at their load and their value', () => {
  const chart = overloadChart([result('one', 1, 4), result('one', 2, 8)], options)
  const [first, second] = [...chart.matchAll(/cx="([\d.]+)" cy="([\d.]+)"/g)].map(([, x, y]) => [
    Number(x),
    Number(y),
  ])
  expect(first?.[0]).toBe(56 + 352 / 2)
  expect(second?.[0]).toBe(56 + 352)
  expect(first?.[1]).toBe(74 + 216 / 2)
  expect(second?.[1]).toBe(74)
})

test('a chart of nothing but zeros, or of one load, still has axes', () => {
  expect(overloadChart([result('one', 1, 0)], options)).not.toMatch(/NaN|Infinity/)
})

test('ticks are round, few, and reach what they measure', () => {
  expect(ticksTo(3)).toEqual([0, 0.5, 1, 1.5, 2, 2.5, 3])
  expect(ticksTo(8.4)).toEqual([0, 2, 4, 6, 8, 10])
  expect(ticksTo(100)).toEqual([0, 20, 40, 60, 80, 100])
  for (const most of [0, 0.07, 1, 4.83, 10.6, 99, 1234]) {
    const ticks = ticksTo(most)
    expect(ticks.length).toBeLessThanOrEqual(8)
    expect(ticks.at(-1)).toBeGreaterThanOrEqual(most)
  }
})

test('text cannot break out of its element', () => {
  expect(escaped('<a href="x">&')).toBe('&#60;a href=&#34;x&#34;&#62;&#38;')
})
