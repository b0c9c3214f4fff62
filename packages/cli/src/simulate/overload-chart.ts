import type { SimulationOptions, SimulationResult } from './simulate.ts'
import { element, escaped, ticksTo } from './svg.ts'
import { slots } from './workload.ts'

interface Panel {
  readonly title: string
  readonly left: number
  readonly value: (result: SimulationResult) => number
}

const width = 860
const height = 400
const plot = { top: 74, width: 352, height: 216 }

const panels: readonly Panel[] = [
  { title: 'answers in time, per second', left: 56, value: ({ goodput }) => goodput },
  { title: 'slot time wasted, %', left: 486, value: ({ wastedSlotTime }) => 100 * wastedSlotTime },
]

// told apart by those who see no red or green too, and by their dashes in print
const dashes = ['2 3', '7 4', '10 3 2 3', '4 2', '12 3', '']
const style = `
  svg { font: 13px system-ui, sans-serif; --paper: #ffffff; --ink: #24292f; --line: #d0d7de;
    --s0: #8c959f; --s1: #c4620a; --s2: #0969da; --s3: #8250df; --s4: #bf3989; --s5: #0a7d4f }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #e6edf3; --line: #30363d;
      --s0: #8b949e; --s1: #f0883e; --s2: #58a6ff; --s3: #bc8cff; --s4: #f778ba; --s5: #3fb950 }
  }
  .paper { fill: var(--paper) } text { fill: var(--ink) } .title { font-weight: 600 } .small { font-size: 12px }
  .grid { stroke: var(--line); stroke-width: 1 } .curve { fill: none; stroke-width: 2.5 }
${dashes.map((_, index) => `  .s${index} { stroke: var(--s${index}) } .d${index} { fill: var(--s${index}) }`).join('\n')}
`

/** A chart of what each policy makes of more and more load: answers in time, and slot time wasted. For light and dark pages. */
export function overloadChart(results: readonly SimulationResult[], options: SimulationOptions): string {
  const policies = [...new Set(results.map(({ policy }) => policy))]
  const title = `A model with ${slots} slots under load; each user waits ${Number((options.budget / 1000).toFixed(1))} s at most`
  const drawing = element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: 'img',
    },
    element('title', {}, escaped(title)),
    element('style', {}, style),
    element('rect', { class: 'paper', width, height }),
    element('text', { class: 'title', x: 20, y: 28 }, escaped(title)),
    ...panels.map((panel) => drawPanel(panel, { policies, results })),
    ...policies.map((policy, index) => drawKey(policy, index)),
  )
  return `${drawing}\n`
}

function drawPanel(
  { title, left, value }: Panel,
  {
    policies,
    results,
  }: { readonly policies: readonly string[]; readonly results: readonly SimulationResult[] },
): string {
  const across = ticksTo(Math.max(...results.map(({ load }) => load)))
  const upwards = ticksTo(Math.max(...results.map(value)))
  const x = (load: number): number => left + (plot.width * load) / (across.at(-1) ?? 1)
  const y = (height: number): number => plot.top + plot.height * (1 - height / (upwards.at(-1) ?? 1))
  const middle = left + plot.width / 2
  const bottom = plot.top + plot.height
  return [
    element('text', { x: left, y: plot.top - 14 }, escaped(title)),
    ...upwards.map(
      (tick) =>
        element('path', { class: 'grid', d: `M${left} ${fixed(y(tick))}h${plot.width}` }) +
        element('text', { class: 'small', x: left - 8, y: y(tick) + 4, 'text-anchor': 'end' }, String(tick)),
    ),
    ...across.map((tick) =>
      element('text', { class: 'small', x: x(tick), y: bottom + 18, 'text-anchor': 'middle' }, String(tick)),
    ),
    element('text', { x: middle, y: bottom + 38, 'text-anchor': 'middle' }, 'load, times the capacity'),
    ...policies.map((policy, index) => {
      const points = results
        .filter((result) => result.policy === policy)
        .sort((one, other) => one.load - other.load)
        .map((result) => ({ x: x(result.load), y: y(value(result)) }))
      return drawCurve(points, index)
    }),
  ].join('\n')
}

function drawCurve(points: readonly { readonly x: number; readonly y: number }[], index: number): string {
  const path = points
    .map((point, at) => `${at === 0 ? 'M' : 'L'}${fixed(point.x)} ${fixed(point.y)}`)
    .join('')
  return [
    element('path', { class: `curve s${index}`, d: path, 'stroke-dasharray': dashes[index] ?? '' }),
    ...points.map((point) => element('circle', { class: `d${index}`, cx: point.x, cy: point.y, r: 3 })),
  ].join('')
}

function drawKey(policy: string, index: number): string {
  const left = 56 + (index % 3) * 268
  const y = height - 46 + Math.floor(index / 3) * 22
  return [
    element('path', {
      class: `curve s${index}`,
      d: `M${left} ${y}h30`,
      'stroke-dasharray': dashes[index] ?? '',
    }),
    element('text', { class: 'small', x: left + 38, y: y + 4 }, escaped(policy)),
  ].join('')
}

function fixed(pixels: number): string {
  return String(Number(pixels.toFixed(1)))
}
