import type { Look } from '../terminal/look.ts'
import { type Paint, paint } from '../terminal/paint.ts'
import { clipped } from '../terminal/printable.ts'
import { timeText } from '../terminal/time-text.ts'

/** A line of the picture; milliseconds since the request was begun. */
export interface Row {
  readonly label: string
  /** How deep it is indented. */
  readonly depth: number
  readonly start: number
  readonly end: number
  /** Whether it was still running when it was reported, so that its end is not known. */
  readonly running?: boolean
  /** What stands behind its time. */
  readonly remark: string
  readonly colour: Paint
}

/** The time that the picture's width stands for, and where the deadline lies in it, if it does. */
export interface Scale {
  readonly span: number
  readonly deadline: number | undefined
}

/** How much room the parts of a line have; `stacked`: the bar stands below its label. */
export interface Columns {
  readonly label: number
  readonly bar: number
  readonly remark: number
  readonly stacked: boolean
}

const timeWidth = 7
const narrowest = 68

/** How wide the columns must be for these rows. */
export function columnsFor(rows: readonly Row[], { columns }: Look): Columns {
  const longest = Math.max(...rows.map(({ label, depth }) => depth * 2 + label.length))
  if (columns < narrowest) {
    return { label: columns - 2 - timeWidth - 1, bar: columns - 5, remark: 0, stacked: true }
  }
  const remark = Math.min(20, Math.max(0, ...rows.map((row) => row.remark.length)))
  const label = Math.min(longest, Math.floor(columns * 0.3))
  const bar = columns - 2 - label - 2 - 1 - 1 - timeWidth - (remark === 0 ? 0 : remark + 2)
  return { label, bar: Math.max(12, bar), remark, stacked: false }
}

/** A line of the picture, or two. */
export function drawRow(row: Row, scale: Scale, columns: Columns, look: Look): string {
  const { depth, end, start, colour } = row
  const name = '  '.repeat(depth) + row.label
  const label = clipped(name, columns.label, look.unicode ? '…' : '~')
  const time = (row.running === true ? '' : timeText(end - start)).padStart(timeWidth)
  const room = columns.stacked ? columns.label - label.length - 2 : columns.remark
  const short = room < 4 ? '' : clipped(row.remark, room, look.unicode ? '…' : '~')
  const remark = short === '' ? '' : `  ${paint(short, colour, look)}`
  const bar = drawBar(row, scale, columns.bar, look)
  if (!columns.stacked) return `  ${label.padEnd(columns.label)}  ${bar} ${time}${remark}`.trimEnd()
  const gap = ' '.repeat(columns.label - label.length - (short === '' ? 0 : short.length + 2))
  return `  ${label}${remark}${gap} ${time}`.trimEnd() + `\n  ${bar}`.trimEnd()
}

/** `0` above the left end, and the time of the deadline above its line. */
export function drawAxis(scale: Scale, columns: Columns, look: Look): string {
  const at = scale.deadline ?? scale.span
  const text = timeText(at)
  const position = Math.round((at / scale.span) * columns.bar)
  const before = Math.max(1, position + 1 - text.length)
  const margin = columns.stacked ? '  ' : ' '.repeat(columns.label + 4)
  return margin + paint(`0${' '.repeat(Math.max(1, before - 1))}${text}`, 'grey', look)
}

const eighths = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** The bar between its moments, and the line of the deadline, over `width` + 1 characters. */
function drawBar(
  { start, end, running, colour }: Row,
  { span, deadline }: Scale,
  width: number,
  look: Look,
): string {
  const perCharacter = span / width
  const from = Math.min(width - 1, Math.max(0, Math.floor(start / perCharacter)))
  const exact = Math.min(width, Math.max(from, end / perCharacter)) - from
  const shape = running === true ? runningShape(exact, look) : solidShape(exact, look)
  const line = deadline === undefined ? -1 : Math.min(width, Math.round(deadline / perCharacter))
  const drawn = `${' '.repeat(from)}${shape}`.padEnd(width + 1).slice(0, width + 1)
  if (line < 0) return paint(drawn, colour, look)
  const isCrossed = line >= from && line < from + shape.length
  const mark = look.unicode ? (isCrossed ? '┃' : '│') : '|'
  return (
    paint(drawn.slice(0, line), colour, look) +
    paint(mark, 'yellow', look) +
    paint(drawn.slice(line + 1), colour, look)
  )
}

function solidShape(exact: number, { unicode }: Look): string {
  if (!unicode) return '#'.repeat(Math.max(1, Math.round(exact)))
  const inEighths = Math.max(1, Math.round(exact * 8))
  return '█'.repeat(Math.floor(inEighths / 8)) + (eighths[inEighths % 8] ?? '')
}

function runningShape(exact: number, { unicode }: Look): string {
  return (unicode ? '░' : '-').repeat(Math.max(1, Math.round(exact)))
}
