import type { DecodeRecord } from './decoder.ts'
import type { Visit } from './load.ts'

/** What a run of the load came to. */
export interface Summary {
  readonly users: number
  readonly answered: number
  /** Latency in ms, over all users; those who left count with the time after which they did. */
  readonly p50: number
  readonly p99: number
  /** What the model spent; `undefined` where the model does not tell. */
  readonly decoding: DecodeCost | undefined
}

/** What the model spent on a run, and for whom. */
export interface DecodeCost {
  readonly seconds: number
  /** On users who had no answer in time, before and after they left. */
  readonly secondsForNobody: number
  readonly secondsAfterLeaving: number
  readonly tokens: number
  readonly tokensAfterLeaving: number
}

/** Puts together what the users saw and what the model did for each of them. */
export function summarise(visits: readonly Visit[], records: readonly DecodeRecord[] | undefined): Summary {
  const latencies = visits.map((visit) => visit.latency).toSorted((a, b) => a - b)
  return {
    users: visits.length,
    answered: visits.filter((visit) => visit.answered).length,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    decoding: records && decodeCost(visits, records),
  }
}

/** The smallest value that at least the share `q` of the values does not exceed; NaN of none. */
export function quantile(ascending: readonly number[], q: number): number {
  return ascending[Math.max(0, Math.ceil(q * ascending.length) - 1)] ?? Number.NaN
}

function decodeCost(visits: readonly Visit[], records: readonly DecodeRecord[]): DecodeCost {
  const visitOf = new Map(visits.map((visit) => [visit.id, visit]))
  const cost = { seconds: 0, secondsForNobody: 0, secondsAfterLeaving: 0, tokens: 0, tokensAfterLeaving: 0 }
  for (const record of records) {
    const visit = visitOf.get(record.id)
    if (visit === undefined) continue
    const seconds = (record.ended - record.started) / 1000
    cost.seconds += seconds
    cost.tokens += record.tokens
    if (visit.answered) continue
    const after = Math.max(0, record.ended - Math.max(record.started, visit.ended)) / 1000
    cost.secondsForNobody += seconds
    cost.secondsAfterLeaving += after
    // Tokens come at an even pace, so their share after the leaving is that of the time.
    if (after > 0) cost.tokensAfterLeaving += Math.round((record.tokens * after) / seconds)
  }
  return cost
}

/** One run with the heading it is shown under. */
export interface Column {
  readonly heading: readonly [string, string]
  readonly summary: Summary
}

type Row = readonly [label: string, cell: (summary: Summary) => string]

const usersSaw: readonly Row[] = [
  ['answered in time', ({ answered, users }) => `${answered} of ${users} ${percent(answered, users)}`],
  ['latency p50', ({ p50 }) => `${(p50 / 1000).toFixed(2)} s`],
  ['latency p99', ({ p99 }) => `${(p99 / 1000).toFixed(2)} s`],
]

const modelSpent: readonly Row[] = [
  ['decode seconds', ofDecoding(({ seconds }) => seconds.toFixed(1))],
  [
    '  spent for nobody',
    ofDecoding(
      ({ secondsForNobody, seconds }) =>
        `${secondsForNobody.toFixed(1)} ${percent(secondsForNobody, seconds)}`,
    ),
  ],
  ['  after the user had left', ofDecoding(({ secondsAfterLeaving }) => secondsAfterLeaving.toFixed(1))],
  ['tokens decoded', ofDecoding(({ tokens }) => String(tokens))],
  ['  after the user had left', ofDecoding(({ tokensAfterLeaving }) => String(tokensAfterLeaving))],
]

/** The runs side by side, as lines of text; what no model tells is left out. */
export function drawReport(columns: readonly Column[]): string[] {
  const isTold = columns.some(({ summary }) => summary.decoding !== undefined)
  const table = [
    ['', ...columns.map(({ heading }) => heading[0])],
    ['', ...columns.map(({ heading }) => heading[1])],
    ...(isTold ? [...usersSaw, ...modelSpent] : usersSaw).map(([label, cell]) => [
      label,
      ...columns.map(({ summary }) => cell(summary)),
    ]),
  ]
  const widths = columns.map((_, index) => Math.max(...table.map((row) => row[index + 1]?.length ?? 0)))
  const labelWidth = Math.max(...table.map((row) => row[0]?.length ?? 0))
  return table.map(([label = '', ...cells]) =>
    [label.padEnd(labelWidth), ...cells.map((cell, index) => cell.padStart(widths[index] ?? 0))]
      .join('    ')
      .trimEnd(),
  )
}

function ofDecoding(show: (cost: DecodeCost) => string): (summary: Summary) => string {
  return ({ decoding }) => (decoding === undefined ? 'not told' : show(decoding))
}

function percent(part: number, whole: number): string {
  const share = whole === 0 ? 0 : Math.round((part / whole) * 100)
  return `${share} %`.padStart(5)
}
