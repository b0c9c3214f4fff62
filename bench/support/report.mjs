/**
 * Whether a target is met, in words. A `floor` is what cost in the same run, by itself, what nothing can do without: a
 * target below that is out of reach.
 */
export function verdictOf({ of, value, most, least, why, floor }) {
  const isMet = most === undefined ? value >= least : value <= most
  const isOutOfReach = !isMet && floor !== undefined && floor.value > most
  const limit = most === undefined ? `at least ${shown(least)}` : `at most ${shown(most)}`
  const verdict = isMet ? 'met' : isOutOfReach ? 'OUT OF REACH' : 'MISSED'
  const compared = isMet || floor === undefined ? '' : `, ${floor.name}: ${shown(floor.value)}`
  const text = `${of} ${limit}${why === undefined ? '' : ` (${why})`}: ${verdict}${compared}`
  return { text, isMet, isOutOfReach }
}

/** A section's table as Markdown, each row with its targets beside it. */
export function markdownOf({ title, rows, notes = [] }) {
  const columns = [...new Set(rows.flatMap(({ figures }) => Object.keys(figures)))]
  const hasTargets = rows.some(({ targets = [] }) => targets.length > 0)
  const head = ['', ...columns, ...(hasTargets ? ['targets'] : [])]
  const body = rows.map(({ name, figures, targets = [] }) => [
    name,
    ...columns.map((column) => shown(figures[column])),
    ...(hasTargets ? [targets.map((target) => verdictOf(target).text).join('; ')] : []),
  ])
  const widths = head.map((text, at) => Math.max(text.length, ...body.map((row) => row[at].length), 3))
  const line = (cells) => `| ${cells.map((cell, at) => pad(cell, widths[at], at)).join(' | ')} |`
  const rule = `| ${widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`
  return [
    `### ${title}`,
    '',
    line(head),
    rule,
    ...body.map(line),
    ...notes.map((note) => `\n${note}`),
    '',
  ].join('\n')
}

function pad(cell, width, at) {
  return at === 0 ? cell.padEnd(width) : cell.padStart(width)
}

function shown(value) {
  if (value === undefined) return ''
  if (typeof value === 'string') return value
  if (!Number.isFinite(value)) return String(value)
  const size = Math.abs(value)
  return size >= 1_000
    ? Math.round(value).toLocaleString('en')
    : size >= 100
      ? value.toFixed(0)
      : size >= 10
        ? value.toFixed(1)
        : value.toFixed(2)
}
