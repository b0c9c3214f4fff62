import type { TimingReport } from '@timebudget/core/wire'
import type { Paint } from '../terminal/paint.ts'
import { clipped, printable } from '../terminal/printable.ts'
import type { Probe } from './probe.ts'
import type { Row } from './waterfall.ts'

const mostRows = 64

/** The parts of a request as lines: connecting, waiting for the first byte with the services' work in it, reading. */
export function rowsOf({ exchange, operations }: Probe): readonly Row[] {
  const { sentAt, firstByteAt, total, events } = exchange
  const rows: Row[] = [phase('connect', 0, sentAt ?? total)]
  if (sentAt === undefined) return rows
  rows.push(phase('first byte', sentAt, firstByteAt ?? total))
  // what a service tells counts from the request's arrival, which was a little after it was sent
  for (const report of operations.slice(0, mostRows))
    rows.push(operationRow(report, { sentAt, total, operations }))
  if (firstByteAt === undefined) return rows
  if (events?.firstAt !== undefined) rows.push(phase('first event', sentAt, events.firstAt))
  const remark = events === undefined ? '' : `${events.count} ${events.count === 1 ? 'event' : 'events'}`
  rows.push({ ...phase(events === undefined ? 'body' : 'stream', firstByteAt, total), remark })
  return rows
}

function phase(label: string, start: number, end: number): Row {
  return { label, depth: 0, start, end, remark: '', colour: 'blue' }
}

function operationRow(
  report: TimingReport,
  {
    sentAt,
    total,
    operations,
  }: { readonly sentAt: number; readonly total: number; readonly operations: readonly TimingReport[] },
): Row {
  const { path, start, spent, outcome } = report
  const { label, depth } = placeOf(path, operations)
  return {
    label: clipped(printable(label, 80), 80),
    depth: depth + 1,
    start: sentAt + start,
    end: spent === undefined ? Math.max(total, sentAt + start) : sentAt + start + spent,
    running: spent === undefined,
    remark: outcome === undefined ? 'still running' : outcome === 'ok' ? '' : outcome,
    colour: colourOf(outcome),
  }
}

/** `parent.child` stands under `parent` where that was told as well; names may have dots of their own. */
function placeOf(path: string, all: readonly TimingReport[]): { label: string; depth: number } {
  let label = path
  let depth = 0
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const parent = path.slice(0, dot)
    if (!all.some((other) => other.path === parent)) continue
    if (depth === 0) label = path.slice(dot + 1) || path
    depth += 1
  }
  return { label, depth: Math.min(depth, 8) }
}

function colourOf(outcome: TimingReport['outcome']): Paint {
  if (outcome === undefined) return 'cyan'
  if (outcome === 'ok') return 'green'
  return outcome === 'degraded' ? 'yellow' : 'red'
}
