import { shownUrl } from '../request/target.ts'
import { exitCodeOf } from '../request/verdict.ts'
import type { Look } from '../terminal/look.ts'
import { paint } from '../terminal/paint.ts'
import { clipped, printable } from '../terminal/printable.ts'
import { timeText } from '../terminal/time-text.ts'
import { wrapped } from '../terminal/wrapped.ts'
import type { ProbeFlags } from './flags.ts'
import type { Percentiles } from './percentiles.ts'
import type { OutcomeCount, Summary } from './summary.ts'

/** What `probe -n` prints. */
export function summaryReport(summary: Summary, flags: ProbeFlags, look: Look): string {
  const sections = [head(summary, flags, look), outcomeTable(summary, look), times(summary, look)]
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`
}

function head({ asked, done, took }: Summary, flags: ProbeFlags, look: Look): string {
  const { target, budget, concurrency } = flags
  const stopped = done < asked ? ` (of ${asked}: stopped)` : ''
  const atATime = Math.min(concurrency, asked)
  return [
    wrapped(printable(`${target.method} ${shownUrl(target.url)}`, 400), look),
    wrapped(
      `${done} requests${stopped} of ${timeText(budget)} each, ${atATime} at a time, in ${timeText(took)}`,
      look,
    ),
  ].join('\n')
}

const nameWidth = 19
const countWidth = 7
const shareWidth = 8

function outcomeTable({ outcomes, done }: Summary, look: Look): string {
  if (done === 0) return ''
  const bar = look.columns - 2 - nameWidth - countWidth - shareWidth - 2
  const title = `  ${'outcome'.padEnd(nameWidth)}${'count'.padStart(countWidth)}${'share'.padStart(shareWidth)}`
  const lines = outcomes.map((each) => outcomeLine(each, { done, bar }, look))
  return [paint(title, 'grey', look), ...lines].join('\n')
}

function outcomeLine(
  { outcome, count, because }: OutcomeCount,
  { done, bar }: { readonly done: number; readonly bar: number },
  look: Look,
): string {
  const share = count / done
  const isFine = exitCodeOf(outcome) === 0
  const figures =
    String(count).padStart(countWidth) + `${Number((share * 100).toFixed(1))} %`.padStart(shareWidth)
  const length = bar < 8 ? 0 : Math.max(1, Math.round(share * bar))
  const drawn = paint((look.unicode ? '█' : '#').repeat(length), isFine ? 'green' : 'red', look)
  const line = `  ${outcome.padEnd(nameWidth)}${figures}  ${drawn}`.trimEnd()
  if (because === undefined) return line
  const reason = wrapped(`the first: ${because}`, { columns: look.columns, indent: '    ' })
  return `${line}\n${paint(reason, 'grey', look)}`
}

const figureWidth = 8

function times({ firstByte, total, operations }: Summary, look: Look): string {
  if (total === undefined) return ''
  const rows: (Percentiles & { readonly name: string; readonly notOk?: number })[] = [
    ...(firstByte === undefined ? [] : [{ name: 'first byte', ...firstByte }]),
    { name: 'total', ...total },
    ...operations.map(({ path, ...rest }) => ({ name: `  ${path}`, ...rest })),
  ]
  const hasFaults = look.columns >= 64 && rows.some(({ notOk = 0 }) => notOk > 0)
  const kinds = (['p50', 'p95', 'p99', 'most'] as const).slice(0, look.columns < 48 ? 3 : 4)
  const name = Math.min(
    Math.max(10, ...rows.map((row) => row.name.length)),
    Math.max(4, look.columns - 2 - kinds.length * figureWidth - (hasFaults ? 8 : 0)),
  )
  const titles = kinds.map((kind) => kind.replace('p', 'P').padStart(figureWidth)).join('')
  const lines = rows.map((row) => {
    const figures = kinds.map((kind) => timeText(row[kind]).padStart(figureWidth))
    const faults = hasFaults && (row.notOk ?? 0) > 0 ? paint(String(row.notOk).padStart(8), 'red', look) : ''
    return `  ${clipped(row.name, name, look.unicode ? '…' : '~').padEnd(name)}${figures.join('')}${faults}`
  })
  const title = `  ${''.padEnd(name)}${titles}${hasFaults ? 'not ok'.padStart(8) : ''}`
  return [paint(title, 'grey', look), ...lines].join('\n')
}
