import { shownUrl, type Target } from '../request/target.ts'
import { exitCodeOf, statusText } from '../request/verdict.ts'
import type { Look } from '../terminal/look.ts'
import { paint } from '../terminal/paint.ts'
import { printable } from '../terminal/printable.ts'
import { timeText } from '../terminal/time-text.ts'
import { wrapped } from '../terminal/wrapped.ts'
import type { Probe } from './probe.ts'
import { rowsOf } from './rows.ts'
import { columnsFor, drawAxis, drawRow, type Row, type Scale } from './waterfall.ts'

/** What `probe` prints for one request. */
export function probeReport(probe: Probe, target: Target, look: Look): string {
  const { columns } = look
  const url = wrapped(printable(`${target.method} ${shownUrl(target.url)}`, 400), { columns })
  const sections = [`${url}\n${headline(probe, look)}`, picture(probe, look), figures(probe, look)]
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`
}

/** Status and outcome, and why, where all is not well. */
function headline({ exchange, outcome, because }: Probe, look: Look): string {
  const { status } = exchange
  const isFine = exitCodeOf(outcome) === 0
  const title = status === undefined ? outcome : `${statusText(status)}, ${outcome}`
  const first = paint(title, isFine ? 'green' : 'red', look)
  return because === undefined ? first : `${first}\n${wrapped(because, look)}`
}

/** Less than this part of the budget, and the bars would be slivers. */
const zoomBelow = 0.2

function picture(probe: Probe, look: Look): string {
  const { budget, exchange } = probe
  const { total } = exchange
  const rows = rowsOf(probe)
  const columns = columnsFor([...rows, usedRow(probe)], look)
  const whole: Scale = { span: Math.max(budget, total), deadline: budget }
  const lines = [drawAxis(whole, columns, look), drawRow(usedRow(probe), whole, columns, look)]
  const ends = rows.map(({ end }) => end)
  const last = Math.max(total, ...ends)
  const isZoomed = last < budget * zoomBelow
  const scale: Scale = isZoomed
    ? { span: last, deadline: undefined }
    : { ...whole, span: Math.max(budget, last) }
  if (isZoomed) lines.push('', drawAxis(scale, columns, look))
  return [...lines, ...rows.map((row) => drawRow(row, scale, columns, look))].join('\n')
}

function usedRow({ budget, exchange: { total } }: Probe): Row {
  const isLate = total > budget
  return { label: 'used', depth: 0, start: 0, end: total, remark: '', colour: isLate ? 'red' : 'grey' }
}

function figures({ budget, exchange, operations }: Probe, look: Look): string {
  const { firstByteAt, events, total, stamps, bytes } = exchange
  const isLate = total > budget
  const parts = [
    ...(firstByteAt === undefined ? [] : [`first byte ${timeText(firstByteAt)}`]),
    ...(events?.firstAt === undefined ? [] : [`first event ${timeText(events.firstAt)}`]),
    `total ${timeText(total)}`,
    isLate
      ? `${timeText(total - budget)} over ${timeText(budget)}`
      : `${timeText(budget - total)} left of ${timeText(budget)}`,
    ...(firstByteAt === undefined ? [] : [bytesText(bytes)]),
  ]
  const sent = Object.entries(stamps).map(([name, value]) => `${name}: ${value}`)
  const lines = [wrapped(parts.join(', '), look)]
  if (exchange.sentAt !== undefined && sent.length === 0)
    lines.push(wrapped('sent without a deadline: the headers asked for cannot say so little time', look))
  if (sent.length > 0)
    lines.push(paint(wrapped(`sent ${printable(sent.join(', '), 300)}`, look), 'grey', look))
  if (firstByteAt !== undefined && operations.length === 0) {
    const hint =
      "The service told nothing of its work: no Server-Timing. It has no operations, or reads no deadlines (trust: 'ignore' at an edge): then serverTiming: true lets it tell every caller. timebudget doctor says what it does with deadlines."
    lines.push(paint(wrapped(hint, look), 'grey', look))
  }
  return lines.join('\n')
}

function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}
