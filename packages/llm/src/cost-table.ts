import type { CostRow } from './cost-meter.ts'

const columns: readonly { readonly title: string; readonly of: (row: CostRow) => string }[] = [
  { title: 'feature', of: ({ feature }) => feature },
  { title: 'tenant', of: ({ tenant }) => tenant },
  { title: 'model', of: ({ model }) => model },
  { title: 'calls', of: ({ calls }) => String(calls) },
  { title: 'failed', of: ({ failed }) => String(failed) },
  { title: 'left', of: ({ abandoned }) => String(abandoned) },
  { title: 'input', of: ({ inputTokens }) => String(inputTokens) },
  { title: 'cached', of: ({ cachedTokens }) => String(cachedTokens) },
  { title: 'output', of: ({ outputTokens }) => String(outputTokens) },
  { title: 'amount', of: ({ amount }) => amount.toFixed(6) },
  { title: 'estimated', of: ({ estimated }) => estimated.toFixed(6) },
  { title: 'unpriced', of: ({ unpriced }) => String(unpriced) },
]

/** The rows as a table in plain text, numbers to the right. */
export function formatCosts(rows: readonly CostRow[], currency: string): string {
  const lines = [
    columns.map(({ title }) => (title === 'amount' ? `amount ${currency}` : title)),
    ...rows.map((row) => columns.map(({ of }) => printable(of(row)))),
  ]
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => pad(cell, column, widths))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function pad(cell: string, column: number, widths: readonly number[]): string {
  const width = widths[column] ?? 0
  return column < 3 ? cell.padEnd(width) : cell.padStart(width)
}

/** Names come from outside: none of them may break a line or steer a terminal. */
function printable(text: string): string {
  return text.slice(0, 60).replaceAll(/\p{C}/gu, '?')
}
