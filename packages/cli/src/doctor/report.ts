import { whereIs } from '../manifest.ts'
import { shownUrl, type Target } from '../request/target.ts'
import type { Look } from '../terminal/look.ts'
import { type Paint, paint } from '../terminal/paint.ts'
import { printable } from '../terminal/printable.ts'
import { timeText } from '../terminal/time-text.ts'
import { wrapped } from '../terminal/wrapped.ts'
import { type Advice, everyAdvice } from './advice.ts'
import type { Diagnosis } from './diagnosis.ts'
import { answerText, type Examination } from './examination.ts'
import type { Finding } from './finding.ts'

/** What stands above the checks. */
export function headText(target: Target, { plain, usual, leaf }: Examination, look: Look): string {
  const url = printable(`${target.method} ${shownUrl(target.url)}`, 400)
  const watched = leaf === undefined ? '' : '; a leaf is listening'
  const usually = `Without a deadline it answers ${answerText(plain)} in ${timeText(usual)}${watched}.`
  return `${wrapped(url, look)}\n${wrapped(usually, look)}\n\n`
}

const marks: Readonly<Record<Finding['state'], { unicode: string; ascii: string; colour: Paint }>> = {
  holds: { unicode: '✓', ascii: '+', colour: 'green' },
  fails: { unicode: '✗', ascii: 'x', colour: 'red' },
  unseen: { unicode: '?', ascii: '?', colour: 'yellow' },
}

const titleWidth = 31
const narrowest = 72

/** A line, or a few, for a check that is done. */
export function checkText({ check, finding }: Diagnosis, look: Look): string {
  const { unicode, ascii, colour } = marks[finding.state]
  const mark = paint(look.unicode ? unicode : ascii, colour, look)
  const seen = printable(finding.seen, 400)
  if (look.columns < narrowest) {
    return `  ${mark} ${check.title}\n${wrapped(seen, { columns: look.columns, indent: '    ' })}\n`
  }
  const indent = ' '.repeat(4 + titleWidth)
  const text = wrapped(seen, { columns: look.columns, indent }).slice(indent.length)
  return `  ${mark} ${check.title.padEnd(titleWidth)}${text}\n`
}

/** What to do, each advice once, and how it stands in all. */
export function closingText(diagnoses: readonly Diagnosis[], look: Look): string {
  const given = new Set(diagnoses.flatMap(({ finding }) => finding.advice ?? []))
  const advices = [...given].map((name) => {
    const titles = diagnoses.filter(({ finding }) => finding.advice === name).map(({ check }) => check.title)
    return adviceText(titles.join(', '), everyAdvice[name], look)
  })
  return `\n${[...advices, verdictText(diagnoses, look)].join('\n\n')}\n`
}

function adviceText(title: string, { say, code, more }: Advice, look: Look): string {
  const { columns } = look
  const widest = Math.max(...code.map(({ line }) => line.length))
  const fits = code.every(({ note = '' }) => 4 + widest + 2 + note.length <= columns)
  const lines = code.flatMap(({ line, note }) => {
    if (note === undefined) return [line]
    return fits ? [`${line.padEnd(widest)}  ${note}`] : [note, line]
  })
  return [
    paint(wrapped(title, look), 'bold', look),
    wrapped(say, { columns, indent: '  ' }),
    ...lines.map((line) => paint(`    ${line}`, 'cyan', look)),
    paint(`  More: ${whereIs(more)}`, 'grey', look),
  ].join('\n')
}

function verdictText(diagnoses: readonly Diagnosis[], look: Look): string {
  const { holds, fails, unseen } = countStates(diagnoses)
  const parts = [
    `${holds} ${holds === 1 ? 'holds' : 'hold'}`,
    `${fails} ${fails === 1 ? 'does' : 'do'} not`,
    `${unseen} could not be judged`,
  ]
  return paint(wrapped(`${parts.join(', ')}.`, look), fails > 0 ? 'red' : 'green', look)
}

/** How many checks ended in which way. */
export function countStates(diagnoses: readonly Diagnosis[]): Readonly<Record<Finding['state'], number>> {
  const counts = { holds: 0, fails: 0, unseen: 0 }
  for (const { finding } of diagnoses) counts[finding.state] += 1
  return counts
}

/** What `doctor --json` prints; milliseconds. */
export function doctorJson(
  diagnoses: readonly Diagnosis[],
  { target, usual, exitCode }: { readonly target: Target; readonly usual: number; readonly exitCode: number },
): object {
  return {
    url: shownUrl(target.url),
    method: target.method,
    usual: Math.round(usual * 10) / 10,
    exitCode,
    checks: diagnoses.map(({ check, finding }) => ({
      name: check.name,
      title: check.title,
      state: finding.state,
      seen: printable(finding.seen, 400),
      advice: finding.advice === undefined ? null : everyAdvice[finding.advice],
    })),
  }
}
