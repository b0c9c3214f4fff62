import type { SimulationOptions, SimulationResult } from './simulate.ts'
import { capacity, slots, workClasses } from './workload.ts'

/** The results as a Markdown table whose columns stand in line in a terminal too. */
export function resultsTable(results: readonly SimulationResult[], options: SimulationOptions): string {
  const header = [
    'load',
    'policy',
    'in time/s',
    'in time',
    'slots wasted',
    'fails after p50',
    'p99',
    ...workClasses.map(({ name }) => `${name} share`),
  ]
  const rows = results.map((result, index) => [
    results[index - 1]?.load === result.load ? '' : String(result.load),
    result.policy,
    result.goodput.toFixed(2),
    percent(result.inTime),
    percent(result.wastedSlotTime),
    seconds(result.timeToFailure?.p50),
    seconds(result.timeToFailure?.p99),
    ...result.classes.map(({ usefulOfFairShare }) => percent(usefulOfFairShare)),
  ])
  return `${introduction(options)}\n\n${aligned([header, ...rows])}\n\n${legend}\n`
}

function introduction({ budget, duration, noise, seed }: SimulationOptions): string {
  return (
    `A model with ${slots} slots answers ${capacity.toFixed(2)} requests/s; each user waits ${seconds(budget)} at most; ` +
    `${seconds(duration)} of traffic; estimates are off by ${percent(noise)}; seed ${seed}.`
  )
}

const legend =
  'slots wasted: slot time spent on what nobody got in time. share: slot time that went into answers in time, of the\n' +
  "class's fair share: an equal part of all slot time, or all that it needs if that is less."

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  )
  // words to the left, numbers to the right
  const isText = (column: number): boolean => column === 1
  const lines = rows.map((row) => {
    const cells = row.map((cell, column) => {
      const width = widths[column] ?? 0
      return isText(column) ? cell.padEnd(width) : cell.padStart(width)
    })
    return `| ${cells.join(' | ')} |`
  })
  const rule = widths.map((width, column) =>
    isText(column) ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  )
  return [lines[0], `| ${rule.join(' | ')} |`, ...lines.slice(1)].join('\n')
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`
}

function seconds(milliseconds: number | undefined): string {
  return milliseconds === undefined ? '-' : `${Number((milliseconds / 1000).toFixed(1))} s`
}
