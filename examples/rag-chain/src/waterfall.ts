import type { TimingEntry } from './server-timing.ts'
import type { Paint } from './terminal.ts'

/** How a waterfall is drawn. */
export interface WaterfallOptions {
  /** The request's budget in ms: the right edge of the picture. */
  readonly budget: number
  /** Columns for the bars. */
  readonly columns: number
  readonly paint: Paint
}

interface Node {
  readonly entry: TimingEntry
  readonly name: string
  readonly children: Node[]
}

/** Draws where a request's budget went, a line for each operation; what an operation hands on is drawn light. */
export function drawWaterfall(
  entries: readonly TimingEntry[],
  { budget, columns, paint }: WaterfallOptions,
): string[] {
  const used = Math.max(0, ...entries.map(({ start, duration }) => start + duration))
  const scale = columns / Math.max(budget, used)
  const rows = flatten(treeOf(entries), '')
  const labelWidth = Math.max('request'.length, ...rows.map(({ label }) => label.length))

  const bar = (from: number, to: number, mark: string): string => {
    const first = Math.min(Math.round(from * scale), columns - 1)
    return ' '.repeat(first) + mark.repeat(Math.max(1, Math.round(to * scale) - first))
  }
  const line = (label: string, drawn: string, note: string): string =>
    `${label.padEnd(labelWidth)}  ${drawn}  ${note}`.trimEnd()

  const left = Math.max(0, budget - used)
  const spentColumns = Math.round(used * scale)
  const purse = '█'.repeat(spentColumns) + '░'.repeat(columns - spentColumns)
  return [
    line('request', purse, `${ms(used)} of ${budget.toFixed(0)} ms, ${left.toFixed(0)} ms left`),
    ...rows.map(({ label, node: { entry, children } }) => {
      const drawn = bar(entry.start, entry.start + entry.duration, children.length > 0 ? '▒' : '█')
      return line(
        label,
        paint(colorOf(entry.outcome), drawn.padEnd(columns)),
        `${ms(entry.duration)} ms  ${entry.outcome}`,
      )
    }),
  ]
}

function treeOf(entries: readonly TimingEntry[]): Node[] {
  const roots: Node[] = []
  const byPath = new Map<string, Node>()
  for (const entry of entries) {
    const dot = entry.path.lastIndexOf('.')
    // A second attempt has its first one's path: what follows belongs to the later.
    const parent = byPath.get(entry.path.slice(0, Math.max(0, dot)))
    const node = { entry, name: parent ? entry.path.slice(dot + 1) : entry.path, children: [] }
    byPath.set(entry.path, node)
    ;(parent?.children ?? roots).push(node)
  }
  return roots
}

function flatten(nodes: readonly Node[], indent: string): Array<{ label: string; node: Node }> {
  const inOrder = nodes.toSorted((one, other) => one.entry.start - other.entry.start)
  return inOrder.flatMap((node, index) => {
    const last = index === nodes.length - 1
    const label = `${indent}${last ? '└ ' : '├ '}${node.name}`
    return [{ label, node }, ...flatten(node.children, `${indent}${last ? '  ' : '│ '}`)]
  })
}

function colorOf(outcome: string): 'green' | 'red' {
  return outcome === 'ok' ? 'green' : 'red'
}

function ms(value: number): string {
  return value.toFixed(0).padStart(5)
}
